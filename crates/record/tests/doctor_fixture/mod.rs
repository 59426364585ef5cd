//! Made-up examinations of machines, for the tests of record and report. It contains no expectations.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;

use deadheat_record::*;

/// A quiet machine without faults, examined with `--quick`. It has no conclusions yet.
pub(crate) fn calm() -> DoctorRecord {
    DoctorRecord {
        schema: DOCTOR_SCHEMA.into(),
        version: "0.1.0".into(),
        started_unix_ms: 1_750_000_000_000,
        took_s: 4.2,
        seed: 42,
        mode: DoctorMode::Quick,
        machine: Machine {
            cpu_model: Some("Example CPU @ 3.00GHz".into()),
            cpus: 8,
            siblings: vec![vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]],
            memory_bytes: Some(32 << 30),
            kernel: Some("6.12.0".into()),
            os: Some("Example Linux 13".into()),
            hypervisor: None,
            clock_source: Some("tsc".into()),
            governor: Some("performance".into()),
            load_average: Some(0.25),
            cgroup: CgroupKind::V2,
            details: details(),
        },
        pinning: Pinning { server_cpus: vec![0, 1, 4, 5], load_cpus: vec![2, 3, 6, 7] },
        noise: Noise {
            seconds: 1.0,
            cpus: (0..8).collect(),
            steal_share: 0.0,
            stalled_share: Some(0.0),
            longest_stall_ns: Some(0),
            foreign_share: Some(0.004),
            busiest: Vec::new(),
            cpu_pressure: Some(0.0012),
            clock_read_ns: 21.4,
            throttled: Some(0),
        },
        ceiling: Some(DoctorCeiling {
            throughput_rps: 1_312_000.0,
            connections: 64,
            threads: 4,
            backend: "io_uring".into(),
            cpu_us_per_request: 2.9,
            cpu_share: Some(0.97),
        }),
        link: None,
        floor: None,
        resolution: Vec::new(),
        sentence: None,
        proof: None,
        findings: Vec::new(),
        fit: true,
        interrupted: false,
    }
}

fn details() -> MachineDetails {
    MachineDetails {
        allowed_cpus: Some((0..8).collect()),
        cpu_quota: None,
        frequency_driver: Some("acpi-cpufreq".into()),
        governors: Some(BTreeMap::from([("performance".into(), (0..8).collect())])),
        energy_preference: None,
        turbo: Some(false),
        turbo_switch: Some("/sys/devices/system/cpu/cpufreq/boost".into()),
        throttle_events: Some(0),
        on_battery: None,
        clock_sources: Some(vec!["tsc".into(), "hpet".into()]),
        memory_nodes: Some(vec![(0..8).collect()]),
        memory_available_bytes: Some(29 << 30),
        swap_bytes: Some(2 << 30),
        swap_used_bytes: Some(0),
        cgroup_versions: Some(vec![2]),
        cgroup_controllers: Some(vec!["cpu".into(), "freezer".into(), "memory".into()]),
        io_uring: Some(true),
        io_uring_disabled: Some(0),
        hardware_counters: Some(true),
        perf_event_paranoid: Some(1),
        pressure: Some(true),
        open_files: Some(524_288),
        open_files_most: Some(524_288),
        ports: Some((32_768, 60_999)),
        listen_backlog: Some(4_096),
        transparent_huge_pages: Some("madvise".into()),
        address_randomization: Some(2),
        mitigations: Some(mitigations("Mitigation: Retpolines; IBPB: conditional")),
        microcode: Some("0xf6".into()),
        numa_balancing: Some(0),
    }
}

fn mitigations(spectre: &str) -> BTreeMap<String, String> {
    let all = [
        ("meltdown", "Not affected"),
        ("spectre_v1", "Mitigation: usercopy/swapgs barriers"),
        ("spectre_v2", spectre),
    ];
    all.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

/// The same machine after a race of the built-in server against itself, with this spread between epochs.
pub(crate) fn with_floor(sd_log_ratio: f64) -> DoctorRecord {
    DoctorRecord {
        mode: DoctorMode::Usual,
        took_s: 58.3,
        floor: Some(NoiseFloor {
            command: "'/usr/bin/deadheat' null --spin-steps 11000 --port {port}".into(),
            built_in: true,
            epochs: 8,
            epoch_s: 6.2,
            throughput_rps: Some(31_400.0),
            cpu_us_per_request: Some(31.2),
            ratio: Some(1.0012),
            low: Some(0.9961),
            high: Some(1.0063),
            verdict: VerdictWord::Equivalent,
            alpha: 0.025,
            sd_log_ratio: Some(sd_log_ratio),
            sd_range: Some((sd_log_ratio * 0.7, sd_log_ratio * 1.8)),
            stilled_by: "freezer".into(),
            findings: Vec::new(),
        }),
        ..calm()
    }
}

/// A laptop with everything wrong that can be wrong.
pub(crate) fn laptop() -> DoctorRecord {
    let calm = calm();
    let details = MachineDetails {
        allowed_cpus: Some(vec![0, 1]),
        cpu_quota: Some(1.5),
        frequency_driver: Some("intel_pstate".into()),
        governors: Some(BTreeMap::from([("powersave".into(), (0..8).collect())])),
        energy_preference: Some("balance_power".into()),
        turbo: Some(true),
        turbo_switch: Some("/sys/devices/system/cpu/intel_pstate/no_turbo".into()),
        throttle_events: Some(1_217),
        on_battery: Some(true),
        memory_nodes: Some(vec![vec![0, 1], vec![2, 3]]),
        swap_used_bytes: Some(700 << 20),
        cgroup_versions: Some(vec![2]),
        cgroup_controllers: Some(Vec::new()),
        io_uring: Some(false),
        io_uring_disabled: Some(2),
        hardware_counters: Some(false),
        perf_event_paranoid: Some(4),
        open_files: Some(1_024),
        open_files_most: Some(1_024),
        ports: Some((50_000, 50_999)),
        listen_backlog: Some(128),
        transparent_huge_pages: Some("always".into()),
        address_randomization: Some(0),
        mitigations: Some(mitigations("Vulnerable")),
        numa_balancing: Some(1),
        ..details()
    };
    DoctorRecord {
        machine: Machine {
            hypervisor: Some("Example Cloud".into()),
            clock_source: Some("hpet".into()),
            governor: Some("powersave".into()),
            cgroup: CgroupKind::None,
            siblings: vec![vec![0, 1], vec![2, 3]],
            details,
            ..calm.machine.clone()
        },
        pinning: Pinning { server_cpus: vec![0, 2], load_cpus: vec![1] },
        noise: Noise {
            steal_share: 0.021,
            stalled_share: Some(0.031),
            longest_stall_ns: Some(48_200_000),
            foreign_share: Some(0.31),
            busiest: vec![
                BusyProcess { pid: 4_711, name: "Web Content".into(), cores: 1.93 },
                BusyProcess { pid: 12, name: "kworker/0:1\u{1b}[31m".into(), cores: 0.05 },
            ],
            cpu_pressure: Some(0.22),
            clock_read_ns: 1_430.0,
            throttled: Some(3),
            ..calm.noise.clone()
        },
        ..calm
    }
}

/// A proof whose races give verdicts for three rows in turn.
pub(crate) fn with_proof() -> DoctorRecord {
    use VerdictWord::{Equivalent, Faster, Inconclusive, Slower};
    let plant = |percent: f64| Plant {
        cost_ns: 31_800.0,
        step_ns: 1.82,
        baseline_steps: 11_000,
        contender_steps: 11_000 + (percent / 100.0 * 31_800.0 / 1.82) as u64,
        checked_ratio: Some(1.0 + percent / 100.0 - 0.0006),
        checked_error: Some(0.0011),
    };
    let row = |name: &str, asked_ratio: f64, plant: Option<Plant>| ProofRow {
        name: name.into(),
        asked_ratio,
        plant,
        true_ratio: None,
        races: 0,
        faster: 0,
        slower: 0,
        equivalent: 0,
        inconclusive: 0,
        invalid: 0,
        median_verdict_s: None,
    };
    let race = |row: usize, verdict: VerdictWord, ratio: f64, took_s: f64| ProofRace {
        row,
        seed: 7,
        verdict,
        ratio: Some(ratio),
        low: Some(ratio - 0.008),
        high: Some(ratio + 0.008),
        epochs: 4,
        took_s,
        cpu_ratio: Some(1.0 / ratio),
        codes: Vec::new(),
    };
    let results = vec![
        race(0, Equivalent, 1.002, 26.0),
        race(1, Slower, 0.971, 26.5),
        race(2, Slower, 0.952, 25.5),
        race(0, Faster, 1.004, 38.0),
        race(1, Inconclusive, 0.975, 72.0),
        race(2, Slower, 0.951, 26.0),
        race(0, Equivalent, 0.999, 27.0),
    ];
    let proof = Proof {
        races: 3,
        most_s: 700.0,
        margin: 0.03,
        alpha: 0.025,
        rows: vec![
            row("A/A", 1.0, None),
            row("3 % more work", 1.03, Some(plant(3.0))),
            row("5 % more work", 1.05, Some(plant(5.0))),
        ],
        results,
    };
    DoctorRecord {
        mode: DoctorMode::Full,
        took_s: 310.0,
        proof: Some(proof),
        interrupted: true,
        ..with_floor(0.006)
    }
}
