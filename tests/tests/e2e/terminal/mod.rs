//! The commands of the terminal: `everturn chat`, `everturn tail` and `everturn show`.

mod agents;
mod chat;
mod pipes;
mod reading;
mod tmux;
