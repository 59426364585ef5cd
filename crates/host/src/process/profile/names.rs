//! Names of functions as a reader knows them from the source, without what compilers and runtimes add.
//!
//! Owns: what runtimes and compilers add to a name. Must not know: addresses.

use deadheat_record::{Function, Stacks};

/// What V8 puts before the name of a function in its map: the kind of code.
const V8_KINDS: [&str; 7] = ["JS:", "Script:", "Eval:", "LazyCompile:", "Function:", "Builtin:", "RegExp:"];
/// The kinds of code that are V8's own.
const V8_OWN: [&str; 5] = ["Builtin:", "RegExp:", "BytecodeHandler:", "Handler:", "Stub:"];
/// What JavaScriptCore puts before it: the compiler.
const JSC_KINDS: [&str; 5] = ["JSC-FTL: ", "JSC-DFG: ", "JSC-Baseline: ", "JSC-DFGOSR: ", "JSC-FTLOSR: "];
/// Marks of V8's compilers before the name.
const V8_TIERS: [char; 5] = ['~', '^', '+', '*', '\''];
/// Beginnings of the names of JavaScript files.
const FILES: [&str; 3] = ["/", "file:", "node:"];
/// Parts of the paths of source files that belong to a library: packages of npm, Go and Rust, the standard libraries of Rust and Go, headers.
const LIBRARIES: [&str; 8] = [
    "/node_modules/",
    "/pkg/mod/",
    "/vendor/",
    "/.cargo/",
    "/.rustup/",
    "/rustc/",
    "/usr/include/",
    "/usr/lib/",
];
/// Beginnings of names in the standard libraries of C++ and Rust, without a leading `<`.
const NAMESPACES: [&str; 5] = ["std::", "core::", "alloc::", "__gnu_cxx::", "__rust"];
/// The first parts of the names of packages in Go's standard library.
const GO_PACKAGES: [&str; 51] = [
    "archive",
    "bufio",
    "builtin",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "unsafe",
    "vendor",
    "weak",
];
/// Ends that GCC and LLVM give to a part or a variant of a function; a number follows.
const VARIANTS: [&str; 5] = ["isra", "constprop", "part", "lto_priv", "llvm"];

/// A function of compiled code, from its entry in a map.
pub(super) fn of_compiled(entry: &str) -> Function {
    if let Some(name) = JSC_KINDS.iter().find_map(|kind| entry.strip_prefix(kind)) {
        let name = name.rsplit_once('#').map_or(name, |(name, _)| name);
        return Function { name: shown(or_anonymous(name)), ..Function::default() };
    }
    let is_v8s = V8_OWN.iter().any(|kind| entry.starts_with(kind));
    let Some(rest) = V8_KINDS.iter().find_map(|kind| entry.strip_prefix(kind)) else {
        return Function { library: is_v8s, ..of_file(entry, None) };
    };
    let rest = rest.trim_start_matches(V8_TIERS);
    // `name file:line:column`; a name may be absent. Both may contain spaces, and a file begins as those of modules do.
    let begins = |at: &usize| FILES.iter().any(|start| rest[at + 1..].starts_with(start));
    let file = rest.match_indices(' ').map(|(at, _)| at).find(begins).or_else(|| rest.rfind(' '));
    let place = file.and_then(|at| Some((&rest[..at], place_of(&rest[at + 1..])?)));
    let Some((name, (file, line, library))) = place else {
        return Function { name: shown(or_anonymous(rest)), library: is_v8s, ..Function::default() };
    };
    let name = shown(or_anonymous(name));
    Function { name, file: Some(file), line: Some(line), library: library || is_v8s, ..Function::default() }
}

/// A function with a symbol in a program or library; `source` is the path of its source file, if that is known.
pub(super) fn of_file(symbol: &str, source: Option<&str>) -> Function {
    let name = without_variant(symbol);
    let library = is_of_standard_library(name) || source.is_some_and(is_of_library);
    Function { name: shown(name), library, ..Function::default() }
}

/// Whether a source file belongs to a library. Code in assembly language nearly always does.
fn is_of_library(source: &str) -> bool {
    let is_assembly = source.ends_with(".s") || source.ends_with(".S");
    is_assembly || LIBRARIES.iter().any(|part| source.contains(part))
}

fn is_of_standard_library(name: &str) -> bool {
    let path = name.trim_start_matches('<');
    // `encoding/json.(*decodeState).object`
    let package = name.split_once('.').map(|(package, _)| package.split('/').next().unwrap_or(package));
    NAMESPACES.iter().any(|start| path.starts_with(start))
        || package.is_some_and(|first| GO_PACKAGES.binary_search(&first).is_ok())
}

/// A function of the kernel.
pub(super) fn of_kernel(symbol: &str) -> Function {
    let name = shown(&format!("{} [kernel]", without_variant(symbol)));
    Function { name, library: true, ..Function::default() }
}

/// Code without a name in the given program or library.
pub(super) fn unnamed(module: Option<&str>) -> Function {
    let file = module.map(|path| shown(path.rsplit('/').next().unwrap_or(path)));
    Function { name: Stacks::UNNAMED.into(), file, ..Function::default() }
}

fn or_anonymous(name: &str) -> &str {
    match name.trim() {
        "" => "(anonymous)",
        name => name,
    }
}

/// The file without its folders, the line, and whether it belongs to a library. The modules of Node.js itself keep their whole name.
fn place_of(place: &str) -> Option<(String, u32, bool)> {
    let (rest, _column) = place.rsplit_once(':')?;
    let (path, line) = rest.rsplit_once(':')?;
    let file = if path.starts_with("node:") { path } else { path.rsplit('/').next()? };
    // Modules of a runtime or of another machine: `node:internal/url`, `ext:core/01_core.js`, `https://deno.land/std/http.ts`.
    let is_here = path.starts_with('/') || path.starts_with("file:") || !path.contains(':');
    Some((shown(file), line.parse().ok()?, !is_here || is_of_library(path)))
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
    fn code_of_runtimes_and_libraries_is_told_from_the_contenders_own() {
        let compiled = |entry| of_compiled(entry).library;
        assert!(!compiled("JS:*slow file:///srv/s.mjs:2:21") && !compiled("JS:+^ /usr/src/app/s.mjs:2:21"));
        assert!(!compiled("JSC-FTL: slow#BjfkwQ"));
        for of_runtime in [
            "JS:*next file:///srv/node_modules/express/lib/router.js:2:21",
            "JS:~get size node:internal/url:7:2",
            "JS:*now ext:deno_web/01_time.js:7:2",
            "JS:*serve https://deno.land/std/http.ts:7:2",
            "Builtin:JsonParse",
            "BytecodeHandler:LdaSmi",
            "RegExp:^(a|b)$",
        ] {
            assert!(compiled(of_runtime), "{of_runtime}");
        }
        for (symbol, source, library) in [
            ("main.planted", Some("/srv/main.go"), false),
            ("example.com/shop/internal/items.(*Store).All", Some("/srv/internal/items/store.go"), false),
            ("shop/items.All", None, false),
            ("encoding/json.(*decodeState).object", None, true),
            ("runtime.memmove", None, true),
            ("memeqbody", Some("/opt/go/src/internal/bytealg/equal_amd64.s"), true),
            (
                "github.com/go-chi/chi/v5.(*Mux).ServeHTTP",
                Some("/go/pkg/mod/github.com/go-chi/chi/v5@v5.2/mux.go"),
                true,
            ),
            ("<core::str::Chars as core::iter::Iterator>::next", None, true),
            ("shop::render", Some("/srv/src/main.rs"), false),
            (
                "serde_json::de::from_str",
                Some("/root/.cargo/registry/src/x/serde_json-1.0.0/src/de.rs"),
                true,
            ),
            ("planted.part.0", None, false),
        ] {
            assert_eq!(of_file(symbol, source).library, library, "{symbol}");
        }
        assert!(GO_PACKAGES.is_sorted() && of_kernel("tcp_sendmsg").library);
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
        let long = of_file(&"ä".repeat(500), None).name;
        assert_eq!((long.chars().count(), long.ends_with('…')), (Stacks::LONGEST_NAME, true));
    }
}
