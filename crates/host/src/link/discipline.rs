//! The settings of the queueing disciplines that make a link slow, as the kernel reads them (`linux/pkt_sched.h`).
//!
//! Owns: the bytes. Must not know: interfaces.

use deadheat_record::Link;

use super::netlink::Discipline;

/// A packet on the wire, its headers included, in bytes.
const PACKET: u64 = 1514;
/// A rate lets this much time's worth of packets go at once, and at least three packets.
const BURST_NS: u64 = 500_000;
/// Packets that wait for longer than this are lost, as in a real device with a full queue.
const QUEUE_NS: u64 = 50_000_000;
/// The kernel's clock for queueing disciplines ticks every 64 ns.
const TICK_NS: u64 = 64;
/// `TC_LINKLAYER_ETHERNET`: packets count as long as they are.
const ETHERNET: u8 = 1;
/// As many packets as a fast network has on its way.
const MOST: u32 = 1_000_000;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;

/// What an interface needs for this link, the outer one first. The rate is inside of the delay: a discipline inside of the rate would take the place of its queue.
pub(super) fn disciplines(link: &Link) -> Vec<Discipline> {
    let slow = link.delays_or_loses().then(|| delay(link));
    let rate = link.rate_bits_per_s.map(|rate| rate_limit(rate / 8));
    slow.into_iter().chain(rate).collect()
}

/// Bytes in this time at this rate, in bytes per second.
fn bytes_in(rate: u64, ns: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(ns) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// `tbf`: a rate, in bytes per second.
fn rate_limit(rate: u64) -> Discipline {
    let burst = small(bytes_in(rate, BURST_NS).max(3 * PACKET));
    let limit = small(bytes_in(rate, QUEUE_NS).max(16 * PACKET) + u64::from(burst));
    let time = u64::from(burst).saturating_mul(1_000_000_000) / rate.max(1) / TICK_NS;
    let mut parms = Vec::new();
    // struct tc_tbf_qopt: the rate, no peak rate, the limit, the burst as a time, no largest packet.
    parms.extend([0, ETHERNET]);
    parms.extend([0; 6]);
    parms.extend(small(rate).to_ne_bytes());
    parms.extend([0; 12]);
    parms.extend(limit.to_ne_bytes());
    parms.extend(small(time).to_ne_bytes());
    parms.extend([0; 4]);
    let mut options = attribute(TCA_TBF_PARMS, &parms);
    options.extend(attribute(TCA_TBF_BURST, &burst.to_ne_bytes()));
    if rate > u64::from(u32::MAX) {
        options.extend(attribute(TCA_TBF_RATE64, &rate.to_ne_bytes()));
    }
    Discipline { kind: "tbf", options }
}

/// `netem`: delay, jitter and loss. Its queue holds what is on its way.
fn delay(link: &Link) -> Discipline {
    let loss = (link.loss * f64::from(u32::MAX)).round() as u32;
    let ticks = |ns: u64| small(ns / TICK_NS).to_ne_bytes();
    // struct tc_netem_qopt: latency, limit, loss, no gap, no duplicates, jitter.
    let mut options = ticks(link.delay_ns).to_vec();
    options.extend(MOST.to_ne_bytes());
    options.extend(loss.to_ne_bytes());
    options.extend([0; 8]);
    options.extend(ticks(link.jitter_ns));
    Discipline { kind: "netem", options }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// An attribute: its length with this header, its number, its value, filled up to four bytes.
fn attribute(number: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), number.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `tc` of iproute2 sends for the same settings.
    #[test]
    fn the_kernel_gets_the_bytes_that_tc_sends() {
        let link = Link { delay_ns: 5_000_000, jitter_ns: 1_000_000, loss: 0.01, ..Link::default() };
        let [netem] = &disciplines(&link)[..] else { panic!("{link:?}") };
        let mut sent = vec![0x2d, 0x31, 0x01, 0x00, 0x40, 0x42, 0x0f, 0x00, 0x29, 0x5c, 0x8f, 0x02];
        sent.extend([0; 8]);
        sent.extend([0x09, 0x3d, 0x00, 0x00]);
        assert_eq!((netem.kind, &netem.options), ("netem", &sent));

        let link = Link { rate_bits_per_s: Some(100_000_000), ..Link::default() };
        let [tbf] = &disciplines(&link)[..] else { panic!("{link:?}") };
        assert_eq!(tbf.kind, "tbf");
        // tc also sends a table for kernels that do not know the link layer; the first byte belongs to it, and the alignment.
        assert_eq!(tbf.options[4 + 8..4 + 12], [0x20, 0xbc, 0xbe, 0x00], "12.5 MB/s");
        assert_eq!(tbf.options[4 + 24..4 + 28], 631_250_u32.to_ne_bytes(), "50 ms and the burst");
        assert_eq!(tbf.options[4 + 28..4 + 32], [0x84, 0x1e, 0x00, 0x00], "500 us in ticks of 64 ns");
        assert_eq!(tbf.options[40..48], [8, 0, 6, 0, 0x6a, 0x18, 0, 0], "6,250 bytes at once");
        assert_eq!(tbf.options.len(), 48);
    }

    #[test]
    fn a_rate_keeps_its_own_queue_inside_of_a_delay_and_nothing_is_nothing() {
        let link = Link { rate_bits_per_s: Some(1_000_000), delay_ns: 1, ..Link::default() };
        let kinds: Vec<&str> = disciplines(&link).iter().map(|one| one.kind).collect();
        assert_eq!(kinds, ["netem", "tbf"]);
        assert!(disciplines(&Link::default()).is_empty());
        // At a low rate, a few packets still fit.
        let slow = &disciplines(&link)[1].options;
        assert_eq!(u32::from_ne_bytes(slow[44..48].try_into().unwrap()), 3 * 1514);
    }
}
