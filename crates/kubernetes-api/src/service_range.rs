//! The range of the cluster addresses of Services.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use ipnet::Ipv4Net;

/// Prefix lengths that kube-apiserver accepts.
const PREFIXES: std::ops::RangeInclusive<u8> = 12..=29;

/// An IPv4 network; the default is 10.96.0.0/12, like in kubeadm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRange(Ipv4Net);

impl Default for ServiceRange {
    fn default() -> Self {
        Self(Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 12))
    }
}

impl ServiceRange {
    /// The network address, which no Service gets.
    pub fn start(self) -> u32 {
        self.0.network().into()
    }

    /// Number of addresses in the range, the first and the last included.
    pub fn size(self) -> u32 {
        1 << (32 - self.0.prefix_len())
    }

    /// Whether the address is in the range.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        self.0.contains(&address)
    }

    /// The address of the Service `default/kubernetes`: the second one.
    #[must_use]
    pub fn api_address(self) -> Ipv4Addr {
        (self.start() + 1).into()
    }
}

impl FromStr for ServiceRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let net: Ipv4Net = text.parse().map_err(|_| {
            format!("\"{text}\" is not an IPv4 network; give one such as {}", Self::default())
        })?;
        if !PREFIXES.contains(&net.prefix_len()) {
            let (widest, narrowest) = (PREFIXES.start(), PREFIXES.end());
            return Err(format!("\"{text}\": the prefix must be /{widest} to /{narrowest}"));
        }
        Ok(Self(net.trunc()))
    }
}

impl fmt::Display for ServiceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_loses_its_host_bits_and_invalid_ranges_are_rejected_with_an_example() {
        let range: ServiceRange = "10.0.0.7/24".parse().unwrap();
        assert_eq!(range.to_string(), "10.0.0.0/24");
        assert_eq!((range.api_address(), range.size()), (Ipv4Addr::new(10, 0, 0, 1), 256));
        for wrong in ["10.0.0.0", "10.0.0.0/8", "10.0.0.0/30", "fd00::/112", ""] {
            let refused = wrong.parse::<ServiceRange>().unwrap_err();
            assert!(refused.contains(wrong) && refused.contains('/'), "{wrong}: {refused}");
        }
    }
}
