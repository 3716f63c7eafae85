//! Classifies addresses. Pure; the guard decides which classes may be called.
//!
//! IPv6 is checked against the allowed range (global unicast) instead of forbidden ranges, so that
//! an unlisted range is refused. Forms that contain an IPv4 address are classified by that address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Public,
    /// This machine or its network: allowed only in tests.
    Private,
    /// Never allowed: metadata services, link-local, multicast, reserved.
    Never,
}

/// Metadata services outside the link-local range; Alibaba, Azure.
const METADATA_V4: [Ipv4Addr; 2] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];
/// AWS, inside the unique-local range.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

pub(crate) fn reach(address: IpAddr) -> Reach {
    match address.to_canonical() {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => reach_v6(v6),
    }
}

fn reach_v4(v4: Ipv4Addr) -> Reach {
    if METADATA_V4.contains(&v4) {
        return Reach::Never;
    }
    match v4.octets() {
        [10, ..]
        | [127, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        // Shared address space of carrier-grade NAT.
        | [100, 64..=127, ..]
        // Benchmarking; some VPNs use these as placeholders for names.
        | [198, 18..=19, ..] => Reach::Private,
        // "This network": connecting to 0.0.0.0 reaches the machine itself.
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0, _]
        // Documentation.
        | [192, 0, 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        // 6to4 relays.
        | [192, 88, 99, _]
        // Multicast, reserved, broadcast.
        | [224..=255, ..] => Reach::Never,
        _ => Reach::Public,
    }
}

fn reach_v6(v6: Ipv6Addr) -> Reach {
    if v6 == METADATA_V6 {
        return Reach::Never;
    }
    if v6 == Ipv6Addr::LOCALHOST {
        return Reach::Private;
    }
    match v6.segments() {
        // Unique local, and the site-local range it replaced.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Reach::Private,
        // NAT64: an IPv4 address at the end.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => reach_v4(embedded(high, low)),
        // 6to4: an IPv4 address after the prefix.
        [0x2002, high, low, ..] => reach_v4(embedded(high, low)),
        // Protocol assignments, Teredo tunnels among them; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reach::Never,
        [0x2000..=0x3fff, ..] => Reach::Public,
        // Unspecified, IPv4-compatible, translated, link-local, multicast and unassigned ranges.
        _ => Reach::Never,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}
