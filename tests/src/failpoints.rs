//! Workers that stop at a failpoint (`supervisor/src/failpoint.rs`), and tool executions of one conversation that do.

use std::fs;

use crate::{
    stack::{Process, Stack},
    wait,
};

const FOLDER: &str = "failpoints";

impl Stack {
    /// Starts a worker that stops at a failpoint and waits there, until the test kills it or lets it go on.
    pub fn worker_stopping_at(&self, failpoint: &str) -> Process {
        let stop = format!("{failpoint}={}", self.path(failpoint).display());
        self.worker_with(&[("EVERTURN_FAILPOINT", &stop)])
    }

    /// Waits until a worker has stopped at a failpoint.
    pub async fn reached(&self, failpoint: &str) {
        let file = self.path(failpoint);
        wait::until(&format!("{failpoint} is reached"), || async {
            file.exists().then_some(())
        })
        .await;
    }

    /// Has every try of what passes a failpoint stop there, not only the first one. Never returns.
    pub async fn stop_each_time(&self, failpoint: &str) {
        loop {
            self.reached(failpoint).await;
            fs::remove_file(self.path(failpoint)).unwrap();
        }
    }

    /// Lets a worker go on from the failpoint that it has stopped at.
    pub fn pass(&self, failpoint: &str) {
        fs::write(self.path(&format!("{failpoint}.go")), "").unwrap();
    }

    /// Starts a worker whose tool executions stop where [`Stack::hold`] says, with additional environment variables.
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

    /// Creates a conversation with one message, whose tool executions stop at `place`. Returns its id.
    pub async fn ask_held(&self, place: &str, content: &str) -> String {
        let client = self.client();
        let conversation = client.create_conversation(None).await.unwrap();
        fs::write(self.path(FOLDER).join(&conversation), place).unwrap();
        client.submit(&conversation, content, None).await.unwrap();
        conversation
    }

    /// Waits until this many tool executions of a conversation have stopped at their failpoint.
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

    /// Lets the tool executions of a conversation that have stopped go on.
    pub fn let_go(&self, conversation: &str) {
        fs::write(self.path(FOLDER).join(format!("{conversation}.go")), "").unwrap();
    }
}
