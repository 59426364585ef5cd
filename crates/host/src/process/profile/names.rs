//! Names of functions as a reader knows them from the source, without what compilers and runtimes add.
//!
//! Owns: what runtimes and compilers add to a name. Must not know: addresses.

use deadheat_record::{Function, Stacks};

/// What V8 puts before the name of a function in its map: the kind of code.
const V8_KINDS: [&str; 7] = ["JS:", "Script:", "Eval:", "LazyCompile:", "Function:", "Builtin:", "RegExp:"];
/// What JavaScriptCore puts before it: the compiler.
const JSC_KINDS: [&str; 5] = ["JSC-FTL: ", "JSC-DFG: ", "JSC-Baseline: ", "JSC-DFGOSR: ", "JSC-FTLOSR: "];
/// Marks of V8's compilers before the name.
const V8_TIERS: [char; 5] = ['~', '^', '+', '*', '\''];
/// Beginnings of the names of JavaScript files.
const FILES: [&str; 3] = ["/", "file:", "node:"];
/// Ends that GCC and LLVM give to a part or a variant of a function; a number follows.
const VARIANTS: [&str; 5] = ["isra", "constprop", "part", "lto_priv", "llvm"];

/// A function of compiled code, from its entry in a map.
pub(super) fn of_compiled(entry: &str) -> Function {
    if let Some(name) = JSC_KINDS.iter().find_map(|kind| entry.strip_prefix(kind)) {
        let name = name.rsplit_once('#').map_or(name, |(name, _)| name);
        return Function { name: shown(or_anonymous(name)), ..Function::default() };
    }
    let Some(rest) = V8_KINDS.iter().find_map(|kind| entry.strip_prefix(kind)) else {
        return of_file(entry);
    };
    let rest = rest.trim_start_matches(V8_TIERS);
    // `name file:line:column`; a name may be absent. Both may contain spaces, and a file begins as those of modules do.
    let begins = |at: &usize| FILES.iter().any(|start| rest[at + 1..].starts_with(start));
    let file = rest.match_indices(' ').map(|(at, _)| at).find(begins).or_else(|| rest.rfind(' '));
    let place = file.and_then(|at| Some((&rest[..at], place_of(&rest[at + 1..])?)));
    let Some((name, (file, line))) = place else {
        return Function { name: shown(or_anonymous(rest)), ..Function::default() };
    };
    Function { name: shown(or_anonymous(name)), file: Some(file), line: Some(line), own: 0 }
}

/// A function with a symbol in a program or library.
pub(super) fn of_file(symbol: &str) -> Function {
    Function { name: shown(without_variant(symbol)), ..Function::default() }
}

/// A function of the kernel.
pub(super) fn of_kernel(symbol: &str) -> Function {
    Function { name: shown(&format!("{} [kernel]", without_variant(symbol))), ..Function::default() }
}

/// Code without a name in the given program or library.
pub(super) fn unnamed(module: Option<&str>) -> Function {
    let file = module.map(|path| shown(path.rsplit('/').next().unwrap_or(path)));
    Function { name: Stacks::UNNAMED.into(), file, line: None, own: 0 }
}

fn or_anonymous(name: &str) -> &str {
    match name.trim() {
        "" => "(anonymous)",
        name => name,
    }
}

/// The file without its folders, and the line. The modules of Node.js itself keep their whole name.
fn place_of(place: &str) -> Option<(String, u32)> {
    let (rest, _column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let file = if file.starts_with("node:") { file } else { file.rsplit('/').next()? };
    Some((shown(file), line.parse().ok()?))
}

/// The name without an end such as `.isra.0`.
fn without_variant(name: &str) -> &str {
    let mut name = name;
    while let Some((rest, number)) = name.rsplit_once('.')
        && !number.is_empty()
        && number.chars().all(|one| one.is_ascii_digit())
        && let Some((rest, word)) = rest.rsplit_once('.')
        && VARIANTS.contains(&word)
    {
        name = rest;
    }
    name
}

/// The name, cut to its longest length.
fn shown(name: &str) -> String {
    if name.chars().count() <= Stacks::LONGEST_NAME {
        return name.to_owned();
    }
    name.chars().take(Stacks::LONGEST_NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        let of = |entry| {
            let Function { name, file, line, .. } = of_compiled(entry);
            format!("{name} {} {}", file.unwrap_or_default(), line.unwrap_or_default())
        };
        assert_eq!(of("JS:*slow file:///srv/a b/s.mjs:2:21"), "slow s.mjs 2");
        assert_eq!(of("JS:+'slow /srv/s.mjs:12:1"), "slow s.mjs 12");
        assert_eq!(of("JS:^ /srv/s.mjs:3:19"), "(anonymous) s.mjs 3");
        assert_eq!(of("JS:~get size node:internal/url:7:2"), "get size node:internal/url 7");
        assert_eq!(of("RegExp:^(a|b)$"), "(a|b)$  0");
        assert_eq!(of("JSC-FTL: slow#BjfkwQ"), "slow  0");
        assert_eq!(of("JSC-DFG: #BjfkwQ"), "(anonymous)  0");
        assert_eq!(of("py::handle:/srv/a.py"), "py::handle:/srv/a.py  0");
        assert_eq!(of("JS:*"), "(anonymous)  0");
    }

    #[test]
    fn ends_of_compilers_are_left_out() {
        let names = [
            "parse.isra.0",
            "parse.constprop.0.isra.3",
            "main.part",
            "main.(*Server).parse.func1",
            "a.0",
            "x.llvm.123",
        ];
        let short = ["parse", "parse", "main.part", "main.(*Server).parse.func1", "a.0", "x"];
        assert_eq!(names.map(without_variant), short);
        assert_eq!(of_kernel("tcp_sendmsg.isra.0").name, "tcp_sendmsg [kernel]");
        assert_eq!(unnamed(Some("/usr/lib/libx.so.1")).file.as_deref(), Some("libx.so.1"));
    }

    #[test]
    fn a_long_name_is_cut() {
        let long = of_file(&"ä".repeat(500)).name;
        assert_eq!((long.chars().count(), long.ends_with('…')), (Stacks::LONGEST_NAME, true));
    }
}
