//! Every kind of address, at the first and last address of its block.

use super::*;

fn verdict(address: &str) -> Result<(), NotPublic> {
    check(address.parse().unwrap())
}

/// Defines a test for each block: its first and last addresses are refused, and the addresses beside it are public unless
/// they belong to another block.
macro_rules! forms {
    ($($name:ident: $kind:ident, refused [$($bad:literal),*], public [$($good:literal),*];)*) => {$(
        #[test]
        fn $name() {
            $(assert_eq!(verdict($bad), Err(NotPublic::$kind), $bad);)*
            $(assert_eq!(verdict($good), Ok(()), $good);)*
        }
    )*};
}

forms! {
    v4_unspecified_is_refused: Unspecified, refused ["0.0.0.0"], public [];
    v4_this_network_is_refused: Reserved, refused ["0.0.0.1", "0.255.255.255"], public ["1.0.0.0"];
    v4_ten_is_refused: Private, refused ["10.0.0.0", "10.255.255.255"], public ["9.255.255.255", "11.0.0.0"];
    v4_shared_is_refused: Shared, refused ["100.64.0.0", "100.100.100.200", "100.127.255.255"],
        public ["100.63.255.255", "100.128.0.0"];
    v4_loopback_is_refused: Loopback, refused ["127.0.0.0", "127.0.0.1", "127.255.255.255"],
        public ["126.255.255.255", "128.0.0.0"];
    v4_link_local_is_refused: LinkLocal, refused ["169.254.0.0", "169.254.255.255"],
        public ["169.253.255.255", "169.255.0.0"];
    v4_metadata_is_refused: Metadata, refused ["169.254.169.254", "168.63.129.16"], public ["168.63.129.17"];
    v4_one_seven_two_is_refused: Private, refused ["172.16.0.0", "172.31.255.255"],
        public ["172.15.255.255", "172.32.0.0"];
    v4_protocol_assignments_are_refused: Reserved, refused ["192.0.0.0", "192.0.0.192", "192.0.0.255"],
        public ["191.255.255.255", "192.0.1.0"];
    v4_test_net_one_is_refused: Documentation, refused ["192.0.2.0", "192.0.2.255"],
        public ["192.0.1.255", "192.0.3.0"];
    v4_six_to_four_relays_are_refused: Embedding, refused ["192.88.99.0", "192.88.99.255"],
        public ["192.88.98.255", "192.88.100.0"];
    v4_one_nine_two_is_refused: Private, refused ["192.168.0.0", "192.168.255.255"],
        public ["192.167.255.255", "192.169.0.0"];
    v4_benchmarking_is_refused: Documentation, refused ["198.18.0.0", "198.19.255.255"],
        public ["198.17.255.255", "198.20.0.0"];
    v4_test_net_two_is_refused: Documentation, refused ["198.51.100.0", "198.51.100.255"],
        public ["198.51.99.255", "198.51.101.0"];
    v4_test_net_three_is_refused: Documentation, refused ["203.0.113.0", "203.0.113.255"],
        public ["203.0.112.255", "203.0.114.0"];
    v4_multicast_is_refused: Multicast, refused ["224.0.0.0", "239.255.255.255"], public ["223.255.255.255"];
    v4_reserved_and_broadcast_are_refused: Reserved, refused ["240.0.0.0", "255.255.255.255"], public [];
    v6_unspecified_is_refused: Unspecified, refused ["::"], public [];
    v6_loopback_is_refused: Loopback, refused ["::1"], public [];
    v6_v4_mapped_is_refused: Embedding, refused ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8"], public [];
    v6_v4_compatible_is_refused: Embedding, refused ["::127.0.0.1", "::8.8.8.8"], public [];
    v6_first_block_is_refused: Embedding, refused ["::2", "64:ff9b:1::1", "ff:ffff::"], public [];
    v6_nat64_of_a_private_address_is_refused: Private, refused ["64:ff9b::10.0.0.1", "64:ff9b::192.168.1.1"],
        public [];
    v6_nat64_of_loopback_is_refused: Loopback, refused ["64:ff9b::127.0.0.1"], public [];
    v6_nat64_of_metadata_is_refused: Metadata, refused ["64:ff9b::169.254.169.254"], public [];
    v6_nat64_of_a_public_address_is_allowed: Unspecified, refused ["64:ff9b::"], public ["64:ff9b::8.8.8.8"];
    v6_discard_is_refused: Reserved, refused ["100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::"], public [];
    v6_teredo_is_refused: Embedding, refused ["2001::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"], public [];
    v6_protocol_assignments_are_refused: Embedding, refused ["2001:2::1", "2001:20::1", "2001:1ff:ffff::"],
        public ["2001:200::1"];
    v6_documentation_is_refused: Documentation, refused ["2001:db8::", "2001:db8:ffff:ffff::1", "3fff::1", "3fff:fff::"],
        public ["2001:db7:ffff::", "2001:db9::", "3fff:1000::"];
    v6_six_to_four_is_refused: Embedding, refused ["2002::", "2002:7f00:1::", "2002:808:808::1"],
        public ["2003::1"];
    v6_unique_local_is_refused: Private, refused ["fc00::", "fd12:3456::1", "fdff:ffff::"], public [];
    v6_metadata_is_refused: Metadata, refused ["fd00:ec2::254"], public [];
    v6_link_local_is_refused: LinkLocal, refused ["fe80::", "fe80::1", "febf:ffff::"], public [];
    v6_site_local_is_refused: Private, refused ["fec0::", "feff:ffff::"], public [];
    v6_multicast_is_refused: Multicast, refused ["ff00::", "ff02::1", "ffff::"], public [];
    v6_outside_global_unicast_is_refused: Reserved, refused ["1fff::1", "4000::1", "5f00::1", "fbff::1"],
        public ["2000::1", "2606:4700:4700::1111", "3ffe::1"];
}

#[test]
fn every_entry_of_the_table_parses() {
    assert_eq!((TABLES.v4.len(), TABLES.v6.len()), (V4.len(), V6.len()));
    assert_eq!((TABLES.global.to_string(), TABLES.nat64.to_string()), (GLOBAL_UNICAST.into(), NAT64.into()));
}
