//! User: [`bootstrap`] makes the first administrator, [`passwords`] keeps hashes apart from the
//! objects, [`admission`] keeps login names unique, [`guard`] keeps the login of a user from those
//! who have less; [`view`] and [`actions`] are their place in the REST view.

pub mod actions;
pub mod admission;
pub mod bootstrap;
pub mod guard;
pub mod passwords;
pub mod view;
