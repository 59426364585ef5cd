//! Divides whole cores between servers and generator, so that the two never share a core.
//!
//! Owns: the machine's cores that this process may use, and how they are divided. Must not know: how to bind a process to its cores.

use std::path::Path;

use deadheat_host::affinity::{allowed, listed};
use deadheat_host::facts::siblings;
use deadheat_record::{Finding, Pinning};

use crate::choices::UsageError;
use crate::values::CpuList;

/// The most cores that drive the load. They outrun any server on the same number of cores.
const MOST_LOAD_CORES: usize = 4;

/// Logical processors that this process may use, grouped by core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// In the order of each core's first processor.
    cores: Vec<Vec<usize>>,
}

impl Topology {
    /// The topology of the machine, limited to the processors that this process may use.
    pub fn of_machine() -> Self {
        let allowed = allowed();
        Self::read(Path::new("/"), if allowed.is_empty() { &[0] } else { &allowed })
    }

    /// Of the machine whose files are below `root`. If the kernel does not list a processor's siblings, it counts as a core.
    pub fn read(root: &Path, allowed: &[usize]) -> Self {
        let siblings = siblings(root);
        let mut cores: Vec<Vec<usize>> = Vec::new();
        for &cpu in allowed {
            if cores.iter().any(|core| core.contains(&cpu)) {
                continue;
            }
            let core = siblings.iter().find(|core| core.contains(&cpu));
            let mut core = core.cloned().unwrap_or_else(|| vec![cpu]);
            core.retain(|sibling| allowed.contains(sibling));
            cores.push(core);
        }
        Self { cores }
    }

    /// All logical processors, in order.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus = self.cores.concat();
        cpus.sort_unstable();
        cpus
    }

    /// Reorders these processors: first one of each core, then the second of each core, because two threads of one core are not two cores. If no
    /// two share a core, the order stays.
    pub fn spread(&self, cpus: &[usize]) -> Vec<usize> {
        let siblings_before = |place: &usize| {
            let core = self.cores.iter().find(|core| core.contains(&cpus[*place]));
            cpus[..*place].iter().filter(|cpu| core.is_some_and(|core| core.contains(cpu))).count()
        };
        let mut order: Vec<usize> = (0..cpus.len()).collect();
        order.sort_by_key(siblings_before);
        order.into_iter().map(|place| cpus[place]).collect()
    }

    /// Divides the cores as typed. Default: with one core, nothing is pinned; with two, each side gets one; with more, the servers get the first
    /// half, and at most four of the rest drive the load.
    ///
    /// # Errors
    /// A list names a processor that does not exist, both lists name the same processor, or one list takes all cores.
    pub fn divide(
        &self,
        server: Option<&CpuList>,
        load: Option<&CpuList>,
    ) -> Result<(Pinning, Vec<Finding>), UsageError> {
        self.existing("--server-cpus", server)?;
        self.existing("--load-cpus", load)?;
        let pinning = match (server, load) {
            (None, None) => return Ok(self.by_default()),
            (Some(CpuList(server)), Some(CpuList(load))) => {
                Pinning { server_cpus: server.clone(), load_cpus: load.clone() }
            }
            (Some(CpuList(server)), None) => {
                let load = self.beside(server, "--server-cpus", MOST_LOAD_CORES)?;
                Pinning { server_cpus: server.clone(), load_cpus: load }
            }
            (None, Some(CpuList(load))) => {
                let server = self.beside(load, "--load-cpus", usize::MAX)?;
                Pinning { server_cpus: server, load_cpus: load.clone() }
            }
        };
        let findings = self.shared(&pinning)?;
        Ok((pinning, findings))
    }

    /// The cores if the load comes from other machines: the servers have those that were named, or all. The load's cores are on the other machines,
    /// and nothing is known of them here.
    ///
    /// # Errors
    /// A list names a processor that does not exist.
    pub fn for_servers(
        &self,
        server: Option<&CpuList>,
        load: Option<&CpuList>,
    ) -> Result<Pinning, UsageError> {
        self.existing("--server-cpus", server)?;
        let of = |list: Option<&CpuList>| list.map(|CpuList(list)| list.clone());
        Ok(Pinning {
            server_cpus: of(server).unwrap_or_else(|| self.cpus()),
            load_cpus: of(load).unwrap_or_default(),
        })
    }

    fn existing(&self, option: &str, list: Option<&CpuList>) -> Result<(), UsageError> {
        let cpus = self.cpus();
        let missing = list.into_iter().flat_map(|CpuList(list)| list).find(|cpu| !cpus.contains(cpu));
        let Some(missing) = missing else { return Ok(()) };
        let problem = format!("{option}: core {missing} does not exist or may not be used by this process");
        Err(UsageError::new(problem, format!("choose from the cores that it may use: {}", listed(&cpus))))
    }

    fn by_default(&self) -> (Pinning, Vec<Finding>) {
        if self.cores.len() < 2 {
            let remedy =
                "race on a machine with two cores or more; figures from this machine apply to it alone";
            let message = "deadheat may use only one core: contenders and load generator share it, and nothing is pinned";
            let findings = vec![Finding::warn("shared-cores", message, remedy)];
            return (Pinning { server_cpus: Vec::new(), load_cpus: Vec::new() }, findings);
        }
        let (server, load) = self.cores.split_at(self.cores.len() / 2);
        let load = &load[..load.len().min(MOST_LOAD_CORES)];
        (Pinning { server_cpus: sorted(server), load_cpus: sorted(load) }, Vec::new())
    }

    /// Processors of cores from which `taken` contains no processor.
    fn beside(&self, taken: &[usize], option: &str, most: usize) -> Result<Vec<usize>, UsageError> {
        let free = self.cores.iter().filter(|core| !core.iter().any(|cpu| taken.contains(cpu)));
        let free: Vec<Vec<usize>> = free.take(most).cloned().collect();
        if free.is_empty() {
            let other = if option == "--server-cpus" { "--load-cpus" } else { "--server-cpus" };
            let problem = format!("{option} {}: no whole core is left for {other}", listed(taken));
            let remedy = "leave out at least one whole core, or give both --server-cpus and --load-cpus";
            return Err(UsageError::new(problem, remedy));
        }
        Ok(sorted(&free))
    }

    fn shared(&self, pinning: &Pinning) -> Result<Vec<Finding>, UsageError> {
        let (server, load) = (&pinning.server_cpus, &pinning.load_cpus);
        if let Some(both) = server.iter().find(|cpu| load.contains(cpu)) {
            let problem = format!("core {both} is in --server-cpus and in --load-cpus");
            return Err(UsageError::new(problem, "give each core either to --server-cpus or to --load-cpus"));
        }
        let touches = |core: &&Vec<usize>, list: &[usize]| core.iter().any(|cpu| list.contains(cpu));
        let split = self.cores.iter().filter(|core| touches(core, server) && touches(core, load));
        let finding = |core: &Vec<usize>| {
            let message = format!(
                "logical processors {} are threads of one core, which contenders and generator share",
                listed(core)
            );
            Finding::warn("shared-siblings", message, "give whole cores to --server-cpus and --load-cpus")
        };
        Ok(split.map(finding).collect())
    }
}

fn sorted(cores: &[Vec<usize>]) -> Vec<usize> {
    let mut cpus = cores.concat();
    cpus.sort_unstable();
    cpus
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine whose cores have these processors.
    fn machine(cores: &[&[usize]]) -> Topology {
        let root = tempfile::tempdir().unwrap();
        let all: Vec<usize> = cores.concat();
        for core in cores {
            for cpu in *core {
                let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("thread_siblings_list"), format!("{}\n", listed(core))).unwrap();
            }
        }
        let mut all = all;
        all.sort_unstable();
        Topology::read(root.path(), &all)
    }

    fn parts(
        topology: &Topology,
        server: Option<&str>,
        load: Option<&str>,
    ) -> Result<(Vec<usize>, Vec<usize>, usize), String> {
        let list = |text: Option<&str>| text.map(|text| CpuList::parse(text).unwrap());
        let divided = topology.divide(list(server).as_ref(), list(load).as_ref());
        divided
            .map(|(pinning, findings)| (pinning.server_cpus, pinning.load_cpus, findings.len()))
            .map_err(|e| e.problem)
    }

    #[test]
    fn cores_are_divided_by_default() {
        for (cores, server, load, findings) in [
            (vec![&[0][..]], vec![], vec![], 1),
            (vec![&[0, 1][..]], vec![], vec![], 1),
            (vec![&[0][..], &[1]], vec![0], vec![1], 0),
            (vec![&[0, 2][..], &[1, 3]], vec![0, 2], vec![1, 3], 0),
            (vec![&[0][..], &[1], &[2]], vec![0], vec![1, 2], 0),
            (vec![&[0, 4][..], &[1, 5], &[2, 6], &[3, 7]], vec![0, 1, 4, 5], vec![2, 3, 6, 7], 0),
        ] {
            assert_eq!(parts(&machine(&cores), None, None), Ok((server, load, findings)), "{cores:?}");
        }
    }

    #[test]
    fn the_generator_takes_four_cores_at_the_most() {
        let singles: Vec<Vec<usize>> = (0..16).map(|cpu| vec![cpu]).collect();
        let cores: Vec<&[usize]> = singles.iter().map(Vec::as_slice).collect();
        assert_eq!(parts(&machine(&cores), None, None), Ok(((0..8).collect(), (8..12).collect(), 0)));
        assert_eq!(parts(&machine(&cores), Some("0"), None), Ok((vec![0], (1..5).collect(), 0)));
        assert_eq!(parts(&machine(&cores), None, Some("0")), Ok(((1..16).collect(), vec![0], 0)));
    }

    #[test]
    fn lists_are_checked() {
        let topology = machine(&[&[0, 2], &[1, 3]]);
        assert_eq!(
            parts(&topology, Some("0"), Some("2")),
            Ok((vec![0], vec![2], 1)),
            "siblings are a warning"
        );
        assert_eq!(parts(&topology, Some("0"), None), Ok((vec![0], vec![1, 3], 0)));
        let problem = |server, load| parts(&topology, server, load).unwrap_err();
        assert_eq!(problem(Some("0,1"), Some("1")), "core 1 is in --server-cpus and in --load-cpus");
        assert!(problem(Some("9"), None).contains("core 9 does not exist"));
        assert!(problem(None, Some("0,1")).contains("no whole core is left"));
    }

    /// Kernels number siblings in either of two ways.
    #[test]
    fn one_thread_of_each_core_comes_first() {
        let near = machine(&[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]);
        assert_eq!(near.spread(&[0, 1, 2, 3]), [0, 2, 1, 3]);
        assert_eq!(near.spread(&[1, 2, 3]), [1, 2, 3]);
        let far = machine(&[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
        assert_eq!(far.spread(&[0, 1, 4, 5]), [0, 1, 4, 5]);
        assert_eq!(far.spread(&[0, 4, 7]), [0, 7, 4]);
        let single = machine(&[&[0], &[1], &[2]]);
        assert_eq!(single.spread(&[0, 1, 2]), [0, 1, 2]);
    }

    #[test]
    fn processors_that_are_not_allowed_do_not_count() {
        let root = tempfile::tempdir().unwrap();
        let topology = Topology::read(root.path(), &[3, 5]);
        assert_eq!(topology.cpus(), [3, 5], "without the kernel's lists each processor is a core");
        assert!(!Topology::of_machine().cpus().is_empty());
    }
}
