//! Classifies IP addresses as public or not: a pure function over a table that mirrors its sources (IANA's special-purpose
//! address registries, and the metadata services of cloud providers).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::{Ipv4Net, Ipv6Net};

/// The reason why an address is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPublic {
    /// The unspecified address, "this host".
    #[error("an unspecified address")]
    Unspecified,
    #[error("a loopback address")]
    Loopback,
    /// A private network, including unique local and site-local addresses.
    #[error("an address of a private network")]
    Private,
    /// A provider's network in which customers share addresses (carrier-grade NAT).
    #[error("an address of a provider's shared network")]
    Shared,
    #[error("a link-local address")]
    LinkLocal,
    /// The metadata service of a cloud provider.
    #[error("the address of a metadata service")]
    Metadata,
    #[error("a multicast address")]
    Multicast,
    /// Reserved for documentation and benchmarks.
    #[error("an address for documentation or tests")]
    Documentation,
    /// An IPv6 form that embeds an IPv4 address.
    #[error("an address that embeds another one")]
    Embedding,
    /// Not assigned to any host on the internet.
    #[error("a reserved address")]
    Reserved,
}

use NotPublic::{
    Documentation, Embedding, LinkLocal, Loopback, Metadata, Multicast, Private, Reserved, Shared,
    Unspecified,
};

const V4: [(&str, NotPublic); 19] = [
    ("0.0.0.0/32", Unspecified),
    ("0.0.0.0/8", Reserved),
    ("10.0.0.0/8", Private),
    ("100.64.0.0/10", Shared),
    ("127.0.0.0/8", Loopback),
    ("168.63.129.16/32", Metadata),
    ("169.254.169.254/32", Metadata),
    ("169.254.0.0/16", LinkLocal),
    ("172.16.0.0/12", Private),
    ("192.0.0.0/24", Reserved),
    ("192.0.2.0/24", Documentation),
    ("192.88.99.0/24", Embedding),
    ("192.168.0.0/16", Private),
    ("198.18.0.0/15", Documentation),
    ("198.51.100.0/24", Documentation),
    ("203.0.113.0/24", Documentation),
    ("224.0.0.0/4", Multicast),
    ("240.0.0.0/4", Reserved),
    ("255.255.255.255/32", Reserved),
];

/// Everything outside the global unicast block is refused; its entries only name the reason.
const V6: [(&str, NotPublic); 13] = [
    ("::/128", Unspecified),
    ("::1/128", Loopback),
    ("::/8", Embedding),
    ("100::/64", Reserved),
    ("2001:db8::/32", Documentation),
    // Teredo, ORCHID, benchmarking and others: no callable host.
    ("2001::/23", Embedding),
    ("2002::/16", Embedding),
    ("3fff::/20", Documentation),
    ("fd00:ec2::254/128", Metadata),
    ("fc00::/7", Private),
    ("fe80::/10", LinkLocal),
    ("fec0::/10", Private),
    ("ff00::/8", Multicast),
];

const GLOBAL_UNICAST: &str = "2000::/3";
const NAT64: &str = "64:ff9b::/96";

static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables {
    v4: V4.iter().filter_map(|(net, kind)| Some((net.parse().ok()?, *kind))).collect(),
    v6: V6.iter().filter_map(|(net, kind)| Some((net.parse().ok()?, *kind))).collect(),
    global: GLOBAL_UNICAST.parse().unwrap_or_default(),
    nat64: NAT64.parse().unwrap_or_default(),
});

struct Tables {
    v4: Vec<(Ipv4Net, NotPublic)>,
    v6: Vec<(Ipv6Net, NotPublic)>,
    global: Ipv6Net,
    nat64: Ipv6Net,
}

/// Returns `Ok` for an address of the public internet, else the reason.
pub fn check(address: IpAddr) -> Result<(), NotPublic> {
    match address {
        IpAddr::V4(address) => check_v4(address),
        IpAddr::V6(address) => check_v6(address),
    }
}

fn check_v4(address: Ipv4Addr) -> Result<(), NotPublic> {
    let found = TABLES.v4.iter().find(|(net, _)| net.contains(&address));
    found.map_or(Ok(()), |(_, kind)| Err(*kind))
}

fn check_v6(address: Ipv6Addr) -> Result<(), NotPublic> {
    // A NAT64 gateway forwards it to the IPv4 address in its last 32 bits.
    if TABLES.nat64.contains(&address) {
        let [.., a, b, c, d] = address.octets();
        return check_v4(Ipv4Addr::new(a, b, c, d));
    }
    if let Some((_, kind)) = TABLES.v6.iter().find(|(net, _)| net.contains(&address)) {
        return Err(*kind);
    }
    if TABLES.global.contains(&address) { Ok(()) } else { Err(Reserved) }
}

#[cfg(test)]
mod tests;
