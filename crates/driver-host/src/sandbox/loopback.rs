//! The loopback interface of a new network namespace, which is there and closed.

use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// `RTM_NEWLINK` of rtnetlink(7): changes an interface.
const NEW_LINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK` of netlink(7).
const REQUEST_WITH_RESPONSE: u16 = 1 | 4;
/// `IFF_UP` of netdevice(7).
const UP: u32 = 1;
/// The kernel makes the loopback interface first.
const LOOPBACK_INDEX: i32 = 1;
/// Of `nlmsghdr` and `ifinfomsg` together.
const MESSAGE_BYTES: u32 = 32;

/// Opens it.
pub(super) fn open() -> nix::Result<()> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    send(socket.as_raw_fd(), &message(), MsgFlags::empty())?;
    let mut response = [0; 256];
    let length = recv(socket.as_raw_fd(), &mut response, MsgFlags::empty())?;
    // The error follows the header; 0 is success.
    let error = response.get(16..20).filter(|_| length >= 20).ok_or(Errno::EBADMSG)?;
    match i32::from_ne_bytes(error.try_into().map_err(|_| Errno::EBADMSG)?) {
        0 => Ok(()),
        error => Err(Errno::from_raw(-error)),
    }
}

fn message() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MESSAGE_BYTES.to_ne_bytes());
    bytes.extend(NEW_LINK.to_ne_bytes());
    bytes.extend(REQUEST_WITH_RESPONSE.to_ne_bytes());
    // Sequence number and sender, then family, padding and type.
    bytes.extend([0; 8]);
    bytes.extend([0; 4]);
    bytes.extend(LOOPBACK_INDEX.to_ne_bytes());
    // Flags, and which of them change.
    bytes.extend(UP.to_ne_bytes());
    bytes.extend(UP.to_ne_bytes());
    bytes
}
