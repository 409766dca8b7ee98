//! Where a request comes from, and under which address it reached us: by its connection, or as a
//! trusted proxy says.

use std::net::IpAddr;

use apiserver::serve::PeerAddress;
use http::{Extensions, HeaderMap, Request};
use ipnet::IpNet;

/// The header by which proxies say who is behind them.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// What only proxies may say: by these headers links are built, origins compared and addresses
/// recorded.
const FORWARDED: [&str; 9] = [
    "forwarded",
    FORWARDED_FOR,
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
    "x-api-host",
    "x-api-url-prefix",
];

/// The proxies in front of this server that are believed. Nobody else's headers are.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Addresses and networks, with commas between them.
    ///
    /// # Errors
    /// The entry that is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let network = |entry: &str| {
            let address = entry.parse::<IpAddr>().map(IpNet::from);
            address.or_else(|_| entry.parse::<IpNet>()).map_err(|_| entry.to_owned())
        };
        entries.map(network).collect::<Result<_, _>>().map(Self)
    }

    /// Removes what only proxies may say, unless one that is trusted said it.
    pub fn remove_untrusted<B>(&self, request: &mut Request<B>) {
        let peer = request.extensions().get::<PeerAddress>();
        if peer.is_some_and(|peer| self.contains(peer.0.ip().to_canonical())) {
            return;
        }
        for name in FORWARDED {
            request.headers_mut().remove(name);
        }
    }

    /// Whether an address is that of such a proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Who sent the request. Each proxy adds the address it was reached from at the end of the
    /// header, so it is read from there, as far as those who wrote it are trusted.
    pub fn sender(&self, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
        let mut sender = extensions.get::<PeerAddress>()?.0.ip().to_canonical();
        let values = headers.get_all(FORWARDED_FOR).iter().rev();
        let hops = values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
        for hop in hops {
            if !self.contains(sender) {
                break;
            }
            let Ok(named) = hop.trim().parse::<IpAddr>() else { break };
            sender = named.to_canonical();
        }
        Some(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(trusted: &str, peer: &str, forwarded: &[&str]) -> String {
        let mut extensions = Extensions::new();
        extensions.insert(PeerAddress(format!("{peer}:1").parse().unwrap()));
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        let trusted = TrustedProxies::parse(trusted).unwrap();
        trusted.sender(&extensions, &headers).unwrap().to_string()
    }

    #[test]
    fn headers_count_only_from_trusted_proxies() {
        let proxies = "10.0.0.0/8, 192.0.2.1";
        for (peer, forwarded, expected) in [
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9"),
            ("10.0.0.1", &[][..], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"][..], "198.51.100.1"),
            // What the client wrote itself stands before what the proxies added.
            ("10.0.0.1", &["1.2.3.4, 198.51.100.1"][..], "198.51.100.1"),
            ("10.0.0.1", &["1.2.3.4", "198.51.100.1, 10.9.9.9"][..], "198.51.100.1"),
            ("192.0.2.1", &["198.51.100.1,192.0.2.2"][..], "192.0.2.2"),
            ("10.0.0.1", &["rubbish"][..], "10.0.0.1"),
            ("[::ffff:10.0.0.1]", &["2001:db8::1"][..], "2001:db8::1"),
        ] {
            assert_eq!(sender(proxies, peer, forwarded), expected, "{peer} {forwarded:?}");
        }
        for (peer, stays) in
            [("10.0.0.1:1", true), ("[::ffff:10.0.0.1]:1", true), ("203.0.113.9:1", false)]
        {
            let mut request = Request::new(());
            request.extensions_mut().insert(PeerAddress(peer.parse().unwrap()));
            for name in FORWARDED {
                request.headers_mut().insert(name, "x".parse().unwrap());
            }
            TrustedProxies::parse(proxies).unwrap().remove_untrusted(&mut request);
            assert_eq!(request.headers().len(), if stays { FORWARDED.len() } else { 0 }, "{peer}");
        }
        assert_eq!(sender("", "127.0.0.1", &["198.51.100.1"]), "127.0.0.1");
        assert_eq!(TrustedProxies::parse("10.0.0.1, proxy").unwrap_err(), "proxy");
    }
}
