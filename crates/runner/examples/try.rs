#![allow(clippy::print_stdout, clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::path::PathBuf;
use deadheat_record::*;
use deadheat_runner::*;
struct Show;
impl Observer for Show {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Round { .. } => {}
            Event::Epoch { record, scenario } => {
                let e = record.epochs_of(scenario).last().unwrap();
                for c in &e.contenders { println!("  {} cold {:.1}ms done {} cpu {:.1}us share {:.3} pss {:?} warm {} reconn {} out {:?}", c.contender, c.cold_start_ns as f64/1e6, c.completions, c.usage.cpu_ns as f64/1e3/c.completions as f64, c.usage.cpu_ns as f64/c.loaded_ns as f64, c.usage.pss_bytes, c.warmup_requests, c.reconnects, c.outcomes); 
                  let r = e.rates(c.contender); println!("    {:?}", r.iter().map(|x| *x as u64).collect::<Vec<_>>()); }
                let m: Vec<_> = e.rounds.iter().map(|r| (r.external.steal_share, r.external.foreign_share, r.dropped.clone())).collect();
                println!("  ext {:?}", m.iter().map(|m| format!("{:.3}/{:.3}{}", m.0, m.1.unwrap_or(-1.0), m.2.as_deref().unwrap_or(""))).collect::<Vec<_>>());
                let s: Vec<f64> = record.paired_epochs(scenario, &record.pairs()).unwrap()[0].iter().map(|p| deadheat_stats::epoch_log_ratio(&p.baseline, &p.contender).unwrap().trimmed()).collect();
                println!("  epoch took {:.2}s  ln ratios {:.4?}", e.took_ns as f64/1e9, s);
            }
            Event::Scenario{..} => println!("scenario over"),
            other => println!("{other:?}"),
        }
    }
}
fn main() {
    let args: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|a| a == keeper::KEEPER_COMMAND) { std::process::exit(keeper::keep().into()); }
    if args.first().is_some_and(|a| a == keeper::STAGE_COMMAND) { let e = keeper::stage(&args[1..]); eprintln!("{e}"); std::process::exit(127); }
    let path = args[0].to_string_lossy().into_owned();
    let folder = PathBuf::from(args[1].clone());
    let contenders = args[2..].iter().enumerate().map(|(i, c)| Contender { name: format!("c{i}"), command: c.to_string_lossy().into_owned(), folder: folder.clone(), env: BTreeMap::from([("TRENDING_DB".to_owned(), "/tmp/trending.sqlite".to_owned())]), listen: Listen::FreePort, services: vec![], version: None }).collect();
    let run = RunId::current();
    let h = Hierarchy::detect();
    let plan = Plan { study: "try".into(), title: None, folder: folder.clone(), work: "/tmp/dh-try".into(), dataset: None, services: vec![], contenders, skipped: vec![],
      probes: vec![Probe { name: "p".into(), method: "GET".into(), path, request_headers: BTreeMap::new(), request_body: String::new(), status: StatusRule::Success, headers: BTreeMap::new(), agree_headers: vec![], body: BodyRule { json: vec![], volatile: vec![], exact: None, agree: true }, under_load: true }],
      scenarios: vec![ScenarioPlan { name: "s".into(), shape: Shape::Closed { connections: 64 }, requests: vec![Share { probe: "p".into(), weight: 1 }] }],
      method: Method { profile: "quick".into(), seed: 1, metric: Metric::Throughput, baseline: "c0".into(), all_pairs: false, alpha: 0.025, margin: 0.03, looks: vec![4,6,8,10,12], slice_ns: 100_000_000, settle_ns: 0, rounds: 20, pilot_ns: 4_000_000_000, warmup_ns: (1_000_000_000, 5_000_000_000), warmup_requests: 2000, budget_ns: Some(180_000_000_000), ready_ns: 10_000_000_000, timeout_ns: 10_000_000_000 },
      pinning: Pinning { server_cpus: vec![0], load_cpus: vec![1] }, claims: vec![] };
    let record = Record::new("0".into(), unix_ms(), plan, machine(std::path::Path::new("/"), &h, &run));
    println!("{:?}", record.machine);
    println!("{:?}", leftovers(&h));
    let _ = std::fs::remove_file("/tmp/dh-try.jsonl");
    let mut journal = Journal::create(std::path::Path::new("/tmp/dh-try.jsonl")).unwrap();
    journal.append(&record.header()).unwrap();
    let mut race = Race { record, journal, logs: "/tmp/dh-try/logs".into(), stopped: &|| false, observer: &mut Show, out: vec![], run: &run, hierarchy: &h };
    println!("{:?}", race.go());
}
