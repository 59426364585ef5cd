//! Owns: the options of `compare`. Must not know: records.

use std::path::PathBuf;

use clap::Args;
use deadheat_analysis::compare::{CompareOptions, FailIf};
use deadheat_record::Metric;

use super::Output;
use super::fail_if::fail_if;
use deadheat_study::values;

const COMPARE_HELP: &str = "\
Examples:
  deadheat compare main.jsonl branch.jsonl --fail-if 'slower by 3%' --fail-if 'p99 slower by 10%'
  deadheat compare main.jsonl branch.jsonl --reference limit --markdown comment.md

Two records from different times also differ by what the machine did in between. It is better to race both revisions in \
one race: deadheat race 'OLD COMMAND' 'NEW COMMAND' --fail-if 'slower by 3%'

Conditions of --fail-if, where METRIC is one of --metric's:
  [METRIC] slower by 3%        the whole interval lies beyond 3 %: certainly slower by that much
  [METRIC] maybe slower by 3%  the interval reaches beyond 3 %: a slowdown by that much is possible
  [METRIC] not equivalent      the records leave open, or show, a difference beyond the margin
  [METRIC] inconclusive        the records cannot decide
Write \'faster\' in place of \'slower\' for the other direction. \'slower\' alone means by any amount. An invalid comparison \
meets no condition.

Exit status: 0 no condition holds; 1 one holds; 2 wrong usage or input; 3 a comparison is invalid.";

/// Options of `compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct CompareFlags {
    /// The old record: of a race (journal or JSON) or of a load (JSON)
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The new record, of the same kind; the verdicts are about this one
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// Divide by this contender, the same program in both records, to cancel changes of the machine
    #[arg(long, value_name = "NAME")]
    pub(crate) reference: Option<String>,
    /// A contender that has another name in the new record; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    pub(crate) map: Vec<(String, String)>,
    /// Compare only these contenders; comma-separated, may be repeated [default: all that are in both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) contender: Vec<String>,
    /// Compare only in these scenarios; comma-separated, may be repeated [default: all that are in both]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) scenario: Vec<String>,
    /// Compare only these metrics; comma-separated, may be repeated [default: all but p90 and p99_9]
    #[arg(long, value_name = "METRIC,..", value_delimiter = ',', value_parser = values::metric(&Metric::all().collect::<Vec<_>>()))]
    pub(crate) metric: Vec<Metric>,
    /// Treat ratios this close to 1 as equivalent [default: the new record's]
    #[arg(long, value_name = "PERCENT", value_parser = values::margin)]
    pub(crate) margin: Option<f64>,
    /// Two-sided error rate of each metric in each scenario [default: the new record's]
    #[arg(long, value_name = "SHARE", value_parser = values::alpha)]
    pub(crate) alpha: Option<f64>,
    /// Exit with status 1 if this holds, such as 'slower by 3%' or 'p99 slower by 10%'; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = fail_if)]
    pub(crate) fail_if: Vec<FailIf>,
    /// Write the comparison as JSON; `-` for standard output
    #[arg(long, value_name = "FILE", value_parser = Output::parse)]
    pub(crate) json: Option<Output>,
    /// Write the comparison as Markdown, for a comment on a pull request [without FILE, or `-`: to standard output]
    #[arg(long, value_name = "FILE", value_parser = Output::parse, num_args = 0..=1, default_missing_value = "-")]
    pub(crate) markdown: Option<Output>,
}

impl CompareFlags {
    /// The options of the comparison of two races.
    pub(crate) fn asked(&self) -> CompareOptions {
        CompareOptions {
            map: self.map.clone(),
            contenders: self.contender.clone(),
            scenarios: self.scenario.clone(),
            metrics: self.metric.clone(),
            reference: self.reference.clone(),
            margin: self.margin,
            alpha: self.alpha,
            conditions: self.fail_if.clone(),
        }
    }

    /// The first option that was typed and has a meaning for races only.
    pub(crate) fn of_races_only(&self) -> Option<&'static str> {
        let typed = [
            ("--fail-if", !self.fail_if.is_empty()),
            ("--reference", self.reference.is_some()),
            ("--map", !self.map.is_empty()),
            ("--contender", !self.contender.is_empty()),
            ("--scenario", !self.scenario.is_empty()),
            ("--metric", !self.metric.is_empty()),
            ("--margin", self.margin.is_some()),
            ("--alpha", self.alpha.is_some()),
        ];
        typed.into_iter().find(|(_, typed)| *typed).map(|(option, _)| option)
    }
}

/// `OLD=NEW`; a name that holds a `=` itself cannot be mapped.
fn pair(text: &str) -> Result<(String, String), String> {
    let pair =
        text.split_once('=').filter(|(old, new)| !old.is_empty() && !new.is_empty() && !new.contains('='));
    let (old, new) = pair.ok_or("write the name in the old record, `=`, and the name in the new one")?;
    Ok((old.into(), new.into()))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::flags::{Cli, Command};

    fn read(line: &str) -> Result<Box<CompareFlags>, clap::Error> {
        let cli = Cli::try_parse_from(line.split(' ').map(|word| word.replace('_', " ")))?;
        let Command::Compare(flags) = cli.command else { panic!("compare") };
        Ok(flags)
    }

    #[test]
    fn every_option_is_read() {
        let flags = read(
            "deadheat compare a b --map x=y --contender y,z --scenario s --metric p99,measure --reference r --margin 5% \
             --alpha 0.05 --fail-if slower_by_3% --fail-if p99_faster --json - --markdown out.md",
        )
        .unwrap();
        let asked = flags.asked();
        assert_eq!(asked.map, [("x".to_owned(), "y".to_owned())]);
        assert_eq!((asked.contenders.len(), asked.conditions.len()), (2, 2));
        assert_eq!(asked.metrics, [Metric::P99, Metric::Measure]);
        assert_eq!((asked.margin, asked.alpha), (Some(0.05), Some(0.05)));
        assert_eq!(flags.markdown, Some(Output::File("out.md".into())));
        assert_eq!(flags.of_races_only(), Some("--fail-if"));
    }

    #[test]
    fn markdown_without_a_file_goes_to_standard_output() {
        assert_eq!(read("deadheat compare a b --markdown").unwrap().markdown, Some(Output::Standard));
        let plain = read("deadheat compare a b").unwrap();
        assert_eq!(
            (plain.markdown.as_ref(), plain.asked(), plain.of_races_only()),
            (None, CompareOptions::default(), None)
        );
        assert!(
            read("deadheat compare --markdown a b").is_err(),
            "a record is never taken for the file to write"
        );
    }

    #[test]
    fn pairs_of_names() {
        assert_eq!(pair("a b=c"), Ok(("a b".into(), "c".into())));
        for text in ["a", "=b", "a=", "a=b=c", ""] {
            assert!(pair(text).is_err(), "{text}");
        }
    }
}
