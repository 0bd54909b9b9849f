//! `everturn chat` in a terminal. The gateway shows live texts of a worker in another process, which needs Redis.

mod agents;
mod chat;
mod tmux;
