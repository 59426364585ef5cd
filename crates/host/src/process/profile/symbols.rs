//! The names of functions at addresses of processes and of the kernel.
//!
//! Owns: where names come from: maps and dumps of compiled code, then the symbols and debug information of programs and libraries. Must not
//! know: how often an address was sampled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use blazesym::{MaybeDefault, Pid};
use deadheat_record::Function;

use super::jit::{CodeMap, perf_map_of};
use super::names;
use super::stacks::{Names, RawStack, RawStacks};

/// Names of addresses, read from processes that still exist.
pub(super) struct Symbols<'a> {
    dumps: &'a Path,
    symbolizer: Symbolizer,
    processes: HashMap<u32, ProcessNames>,
    kernel: HashMap<u64, Vec<Function>>,
}

/// What is known of the addresses of one process.
#[derive(Default)]
struct ProcessNames {
    /// Ranges of executable memory by their first address: the address after the last one, and the file.
    code: BTreeMap<u64, (u64, String)>,
    /// The program that it runs, if its code can be the contender's own. It cannot in a process that compiles code: then it is a runtime.
    program: Option<String>,
    functions: HashMap<u64, Vec<Function>>,
}

impl<'a> Symbols<'a> {
    /// `dumps` is the folder into which runtimes write dumps of compiled code.
    pub(super) fn new(dumps: &'a Path) -> Self {
        let symbolizer = Symbolizer::builder().enable_code_info(true).enable_inlined_fns(true).build();
        Self { dumps, symbolizer, processes: HashMap::new(), kernel: HashMap::new() }
    }

    fn read_process(&self, pid: u32, addresses: &[u64]) -> ProcessNames {
        let compiled = self.compiled(pid);
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok().filter(|_| compiled.is_empty());
        let program = program.map(|path| without_mark(&path.to_string_lossy()).to_owned());
        let mut process = ProcessNames { code: code_of(pid), program, ..ProcessNames::default() };
        let mut in_files = Vec::new();
        let code: Vec<u64> = addresses.iter().copied().filter(|one| process.module(*one).is_some()).collect();
        for address in code {
            match compiled.name(address) {
                Some(entry) => drop(process.functions.insert(address, vec![names::of_compiled(entry)])),
                None => in_files.push(address),
            }
        }
        // With the files of `map_files`, programs are found that were deleted or are elsewhere for the process. That takes more rights.
        let found = [true, false].iter().find_map(|map_files| {
            let mut source = Process::new(Pid::from(pid));
            (source.perf_map, source.map_files) = (false, *map_files);
            let found =
                self.symbolizer.symbolize(&Source::Process(source), Input::AbsAddr(&in_files)).ok()?;
            (!map_files || in_files.is_empty() || found.iter().any(|one| one.as_sym().is_some()))
                .then_some(found)
        });
        for (address, symbol) in in_files.iter().zip(found.unwrap_or_default()) {
            if let Symbolized::Sym(symbol) = symbol {
                let mut functions = functions_of(&symbol);
                if process.is_library(*address) {
                    functions.iter_mut().for_each(|one| one.library = true);
                }
                process.functions.insert(*address, functions);
            }
        }
        process
    }

    /// The code that the process has compiled.
    fn compiled(&self, pid: u32) -> CodeMap {
        let mut map = CodeMap::default();
        if let Some(text) = i32::try_from(pid).ok().and_then(|pid| fs::read(perf_map_of(pid)).ok()) {
            map.add_perf_map(&text);
        }
        for dump in files_in(self.dumps) {
            if let Ok(bytes) = fs::read(dump) {
                map.add_jit_dump(&bytes, pid);
            }
        }
        map
    }

    fn read_kernel(&self, addresses: &[u64]) -> HashMap<u64, Vec<Function>> {
        // The list of running symbols has the addresses as they are; a file of the kernel would have to be found and moved.
        let source = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
        let found = self.symbolizer.symbolize(&Source::Kernel(source), Input::AbsAddr(addresses));
        let named = |(address, symbol): (&u64, Symbolized<'_>)| {
            Some((*address, vec![names::of_kernel(&symbol.into_sym()?.name)]))
        };
        addresses.iter().zip(found.unwrap_or_default()).filter_map(named).collect()
    }
}

impl ProcessNames {
    /// The file of executable memory at an address; empty if it has none.
    fn module(&self, address: u64) -> Option<&str> {
        let (_, (to, file)) = self.code.range(..=address).next_back()?;
        (address < *to).then_some(file.as_str())
    }

    /// Whether the address is in a file other than the program.
    fn is_library(&self, address: u64) -> bool {
        self.module(address).is_some_and(|file| !file.is_empty() && Some(file) != self.program.as_deref())
    }

    /// The functions at an address, the outermost first: several if the compiler put one into another.
    fn functions(&self, address: u64) -> Vec<Function> {
        let module = self.module(address).filter(|file| !file.is_empty());
        let unnamed = || Function { library: self.is_library(address), ..names::unnamed(module) };
        self.functions.get(&address).cloned().unwrap_or_else(|| vec![unnamed()])
    }
}

impl Names for Symbols<'_> {
    fn prepare(&mut self, raw: &RawStacks) {
        let mut of: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let mut kernel = BTreeSet::new();
        for stack in raw.counts.keys() {
            of.entry(stack.pid).or_default().extend(places(&stack.user, stack.kernel.is_empty()));
            kernel.extend(places(&stack.kernel, true));
        }
        let list = |all: BTreeSet<u64>| all.into_iter().collect::<Vec<u64>>();
        self.kernel = self.read_kernel(&list(kernel));
        for (pid, addresses) in of {
            let process = self.read_process(pid, &list(addresses));
            self.processes.insert(pid, process);
        }
    }

    fn functions(&self, stack: &RawStack) -> Vec<Function> {
        let nothing = ProcessNames::default();
        let process = self.processes.get(&stack.pid).unwrap_or(&nothing);
        let user = places(&stack.user, stack.kernel.is_empty()).enumerate();
        // Code without frame pointers leaves numbers in a chain that are no addresses of code. The chain ends there.
        let user = user.take_while(|(at, place)| *at == 0 || process.module(*place).is_some());
        let mut functions: Vec<Vec<Function>> = user.map(|(_, place)| process.functions(place)).collect();
        functions.reverse();
        let kernel = places(&stack.kernel, true);
        let known: Vec<&Vec<Function>> = kernel.filter_map(|place| self.kernel.get(&place)).collect();
        let mut all: Vec<Function> = functions.into_iter().flatten().collect();
        all.extend(known.into_iter().rev().flatten().cloned());
        if !stack.kernel.is_empty() && !self.kernel.contains_key(&stack.kernel[0]) {
            all.push(Function { name: "[kernel]".into(), library: true, ..Function::default() });
        }
        all
    }
}

/// Where a function was at each address of a chain. All but the first are return addresses: the call is just before. `runs` says whether the
/// first is the address that ran.
fn places(chain: &[u64], runs: bool) -> impl Iterator<Item = u64> {
    chain
        .iter()
        .enumerate()
        .map(move |(at, address)| if at == 0 && runs { *address } else { address.saturating_sub(1) })
}

/// The functions of a symbol, the outermost first.
fn functions_of(symbol: &Sym<'_>) -> Vec<Function> {
    let source = |code: Option<&CodeInfo<'_>>| Some(code?.to_path().to_string_lossy().into_owned());
    let named = |name: &str, code| names::of_file(name, source(code).as_deref());
    let inlined = symbol.inlined.iter().map(|one| named(&one.name, one.code_info.as_ref()));
    std::iter::once(named(&symbol.name, symbol.code_info.as_deref())).chain(inlined).collect()
}

/// The executable memory of a process; empty if it has ended.
fn code_of(pid: u32) -> BTreeMap<u64, (u64, String)> {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(range_of).collect()
}

/// A line of `maps`: `from-to rights offset device inode file`.
fn range_of(line: &str) -> Option<(u64, (u64, String))> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let mut words = rest.splitn(5, ' ');
    let executable = words.next()?.contains('x');
    let file = without_mark(words.nth(3).unwrap_or_default().trim());
    executable.then_some((number(from)?, (number(to)?, file.to_owned())))
}

/// The path without the kernel's mark for a file that was deleted.
fn without_mark(path: &str) -> &str {
    path.trim_end_matches(" (deleted)")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_memory_is_found_with_its_file() {
        let line = "7f00-8000 r-xp 00001000 fe:00 1234                       /opt/a b/server (deleted)";
        assert_eq!(range_of(line), Some((0x7f00, (0x8000, "/opt/a b/server".into()))));
        assert_eq!(range_of("8000-9000 rwxp 00000000 00:00 0 "), Some((0x8000, (0x9000, String::new()))));
        assert_eq!(range_of("8000-9000 rw-p 00000000 00:00 0 "), None);
        assert_eq!(range_of("nonsense"), None);
    }

    #[test]
    fn callers_are_found_before_their_return_address() {
        let of = |runs| places(&[10, 20, 30], runs).collect::<Vec<_>>();
        assert_eq!((of(true), of(false)), (vec![10, 19, 29], vec![9, 19, 29]));
    }
}
