//! Clients of the management API in process: no socket, but the same authorization as for
//! everybody.

use apiserver::{ApiServer, UserInfo};
use feature_kit::Clients;
use kube::Client;

/// See [`Clients`].
#[derive(Clone)]
pub struct InProcess(pub ApiServer);

impl InProcess {
    /// May do everything. For the server's own start, never for requests.
    pub fn server(&self) -> Client {
        let user = UserInfo::new("system:drover:server", &["system:masters"]);
        self.client(user)
    }

    /// A client that acts as `user`.
    pub fn client(&self, user: UserInfo) -> Client {
        Client::new(self.0.as_user(user), "default")
    }
}

impl Clients for InProcess {
    fn client_as(&self, user: &str, groups: &[String]) -> Client {
        let groups = groups.to_vec();
        self.client(UserInfo { name: user.to_owned(), groups, ..UserInfo::default() })
    }
}
