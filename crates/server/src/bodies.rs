//! Requests without credentials, and the bodies of requests that the router reads for others.
//!
//! Nothing of a body is buffered for a caller who is not authenticated, unless the path is public.
//! What such callers have under way has limits per address and in all: they are strangers, and
//! anybody can be many of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use api_meta::network;
use api_meta::status::Status;
use apiserver::body::read::{self, RETRY_SECONDS, Sender};
use apiserver::rejections;
use bytes::Bytes;
use hyper::body::Incoming;
use parking_lot::Mutex;

/// Largest body on a public path: a login is some hundred bytes.
pub const PUBLIC_BODY_MAX_BYTES: usize = 64 * 1024;
/// Requests without credentials under way at once from one address (IPv6: from one /64). A browser
/// that opens the login page has some twenty; an office of people may share an address.
const PER_ADDRESS_MAX: usize = 64;
/// Requests without credentials under way at once in all.
const IN_ALL_MAX: usize = 1024;

/// Requests without credentials that are under way. Cheap to clone.
#[derive(Clone, Default)]
pub struct Anonymous(Arc<Mutex<UnderWay>>);

#[derive(Default)]
struct UnderWay {
    in_all: usize,
    by_address: HashMap<Option<IpAddr>, usize>,
}

/// One of them, until dropped.
pub struct Open {
    all: Anonymous,
    address: Option<IpAddr>,
}

impl Anonymous {
    /// Counts a request.
    ///
    /// # Errors
    /// 503 when too many are under way.
    pub fn begin(&self, address: Option<IpAddr>) -> Result<Open, Status> {
        let address = address.map(network::customer);
        let mut under_way = self.0.lock();
        let here = under_way.by_address.get(&address).copied().unwrap_or_default();
        if under_way.in_all >= IN_ALL_MAX || here >= PER_ADDRESS_MAX {
            rejections::ANONYMOUS.count();
            let text = format!(
                "too many requests without credentials at once; try again in {RETRY_SECONDS} s"
            );
            return Err(Status::unavailable(text).retry_after(RETRY_SECONDS));
        }
        under_way.in_all += 1;
        under_way.by_address.insert(address, here + 1);
        Ok(Open { all: self.clone(), address })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut under_way = self.all.0.lock();
        under_way.in_all -= 1;
        if let Some(here) = under_way.by_address.get_mut(&self.address) {
            *here -= 1;
            if *here == 0 {
                under_way.by_address.remove(&self.address);
            }
        }
    }
}

/// Reads a whole body of a caller who is authenticated.
///
/// # Errors
/// What the client gets.
pub async fn read(body: Incoming, size_max: usize) -> Result<Bytes, Status> {
    read::read(body, size_max, Sender::Authenticated).await.map_err(|error| error.to_status())
}

/// Reads a whole body on a public path.
///
/// # Errors
/// What the client gets.
pub async fn read_public(body: Incoming, size_max: usize) -> Result<Bytes, Status> {
    let size_max = size_max.min(PUBLIC_BODY_MAX_BYTES);
    read::read(body, size_max, Sender::Anonymous).await.map_err(|error| error.to_status())
}

/// Reads nothing of a body that the caller may not send here; what needs none gets none.
///
/// # Errors
/// Never; as the others of this module.
pub async fn refuse(body: Incoming) -> Result<Bytes, Status> {
    read::refuse(body).await;
    Ok(Bytes::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_the_requests_of_all_others() {
        let anonymous = Anonymous::default();
        let from = |text: &str| Some(text.parse().unwrap());
        let same: Vec<_> = (0..PER_ADDRESS_MAX)
            .map(|n| anonymous.begin(from(&format!("2001:db8::{n:x}"))).unwrap())
            .collect();
        let status = anonymous.begin(from("2001:db8::ffff")).err().unwrap();
        assert_eq!(status.code, 503);
        assert!(status.details.is_some_and(|details| details.retry_after_seconds == Some(1)));
        drop(anonymous.begin(from("2001:db8:0:1::1")).unwrap());
        drop(same);
        assert!(anonymous.0.lock().by_address.is_empty());
    }

    #[test]
    fn requests_without_credentials_have_an_end_in_all() {
        let anonymous = Anonymous::default();
        let address = |n: usize| Some(IpAddr::V4(u32::try_from(n).unwrap().into()));
        let all: Vec<_> = (0..IN_ALL_MAX).map(|n| anonymous.begin(address(n)).unwrap()).collect();
        assert!(anonymous.begin(address(IN_ALL_MAX)).is_err());
        drop(all);
        anonymous.begin(address(IN_ALL_MAX)).unwrap();
    }
}
