//! Token: [`authenticate`] finds whose it is, [`issue`] makes and ends tokens, [`purge`] removes
//! those that are past their time, [`last_use`] notes when one was used; [`admission`] keeps them
//! from others; [`view`] is their place in the REST view.

pub mod admission;
pub mod authenticate;
pub mod issue;
pub mod last_use;
pub mod purge;
pub mod view;
