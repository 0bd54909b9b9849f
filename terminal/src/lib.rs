//! Conversations on the terminal: the commands that talk to a gateway as any client does.
//!
//! - [`chat`]: `everturn chat`, a conversation on the terminal or in a pipe
//! - [`list`]: `everturn ls`, the conversations as lines
//! - [`tail`]: `everturn tail`, the events of a conversation as lines
//! - [`waterfall`]: `everturn show`, the times of a turn
//! - `options`: the options of the four commands
//! - [`show`]: formats events and foreign texts as lines of a terminal
//! - [`table`]: columns below each other, and ages
//! - [`frames`]: interprets the frames of a client's stream with this release's types
//!
//! Must not be here: a connection to anything but a gateway, the configuration file, and the other commands
//! (`worker/src/roles/`).

pub mod approvals;
pub mod chat;
pub mod frames;
pub mod list;
mod options;
pub mod show;
pub mod table;
pub mod tail;
pub mod waterfall;

pub use options::{
    ApprovalsOptions, ChatOptions, GatewayAddress, LsOptions, ShowOptions, TailOptions,
};
