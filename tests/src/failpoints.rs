//! Workers, and tool executions of one conversation, that stop at a failpoint (`activities/src/failpoint.rs`).

use std::fs;

use crate::{
    stack::{Process, Stack},
    wait,
};

const FOLDER: &str = "failpoints";

impl Stack {
    /// Starts a worker that stops at a failpoint, and waits there to be killed.
    pub fn worker_stopping_at(&self, failpoint: &str) -> Process {
        let file = self.path(failpoint);
        self.worker_with(&[(
            "EVERTURN_FAILPOINT",
            &format!("{failpoint}={}", file.display()),
        )])
    }

    /// Waits until a worker has stopped at a failpoint.
    pub async fn reached(&self, failpoint: &str) {
        let file = self.path(failpoint);
        wait::until(&format!("{failpoint} is reached"), || async {
            file.exists().then_some(())
        })
        .await;
    }

    /// Lets a worker go on from the failpoint it has stopped at.
    pub fn pass(&self, failpoint: &str) {
        fs::write(self.path(&format!("{failpoint}.go")), "").unwrap();
    }

    /// Starts a worker whose tool executions stop where [`Stack::hold`] says, with more environment.
    pub fn worker_holding(&self, environment: &[(&str, &str)]) -> Process {
        let folder = self.path(FOLDER);
        fs::create_dir_all(&folder).unwrap();
        let folder = folder.display().to_string();
        let environment: Vec<_> = environment
            .iter()
            .copied()
            .chain([("EVERTURN_FAILPOINTS", folder.as_str())])
            .collect();
        self.worker_with(&environment)
    }

    /// A new conversation, whose tool executions stop at `place`, with one message; gives its id.
    pub async fn ask_held(&self, place: &str, content: &str) -> String {
        let client = self.client();
        let conversation = client.create_conversation(None).await.unwrap();
        fs::write(self.path(FOLDER).join(&conversation), place).unwrap();
        client.submit(&conversation, content, None).await.unwrap();
        conversation
    }

    /// Waits until so many tool executions of a conversation have stopped.
    pub async fn held(&self, conversation: &str, count: usize) {
        let prefix = format!("{conversation}@");
        wait::until(
            &format!("{count} tools of {conversation} are held"),
            || async {
                let entries = fs::read_dir(self.path(FOLDER))
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name());
                (entries
                    .filter(|name| name.to_string_lossy().starts_with(&prefix))
                    .count()
                    >= count)
                    .then_some(())
            },
        )
        .await;
    }

    /// Lets the held tool executions of a conversation go on.
    pub fn let_go(&self, conversation: &str) {
        fs::write(self.path(FOLDER).join(format!("{conversation}.go")), "").unwrap();
    }
}
