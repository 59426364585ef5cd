//! Reads the throughput from the output of a load generator.
//!
//! Owns: the forms of output. Must not know: which program printed it.

use serde_json::Value;

use deadheat_study::file::Reads;

/// Requests per second according to the output. `None` if it contains no such number, or none above 0.
pub(super) fn throughput(output: &str, reads: Reads) -> Option<f64> {
    let rate = match reads {
        Reads::Json => {
            let line = output.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
            serde_json::from_str::<Value>(line).ok()?.get("throughput_rps")?.as_f64()
        }
        Reads::Text => output.lines().rev().find_map(|line| {
            let (name, number) = line.trim().split_once(':')?;
            name.eq_ignore_ascii_case("requests/sec").then(|| number.trim().parse().ok())?
        }),
    };
    rate.filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_json() {
        let read = |output| throughput(output, Reads::Json);
        assert_eq!(read("warming up\n{\"requests\": 5, \"throughput_rps\": 512.5}\n\n"), Some(512.5));
        for output in [
            "",
            "{}",
            "{\"throughput_rps\": 0}",
            "{\"throughput_rps\": \"5\"}",
            "{\"throughput_rps\": 5}\nbye",
        ] {
            assert_eq!(read(output), None, "{output}");
        }
    }

    #[test]
    fn wrk_and_oha_say_requests_per_second() {
        let read = |output| throughput(output, Reads::Text);
        let wrk = "Running 3s test\n  1200 requests in 3.00s, 1.2MB read\nRequests/sec:  80333.19\nTransfer/sec:     10.65MB\n";
        let oha = "Summary:\n  Success rate:\t100.00%\n  Total:\t1.0 sec\n  Requests/sec:\t13155.9\n\nResponse time histogram:";
        assert_eq!((read(wrk), read(oha)), (Some(80_333.19), Some(13_155.9)));
        assert_eq!((read("Requests/sec: none"), read("")), (None, None));
    }
}
