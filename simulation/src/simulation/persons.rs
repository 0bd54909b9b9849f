//! People who answer approvals and change their minds, and clients that run client tools. Their answers may come twice, late,
//! or through another gateway.

use everturn_proto::words::{ApprovalState, Decision};
use everturn_store::{Access, OutsideTools};
use serde_json::json;

use super::{GATEWAYS, Simulation, client::CONVERSATION};
use crate::{
    gateway::{Gateway, post},
    oracles,
    people::Ask,
    schedule::Owner,
    world::World,
};

/// The most requests of a person, or of a client, without an answer, or before the call is stored.
const MAX_TRIES: usize = 4;

impl Simulation {
    /// People turn to a call that waits for them.
    pub(super) async fn turn_to(&self, execution_id: String) {
        let begun = self.world.people().begin(&execution_id);
        let number = self.world.choices().below(GATEWAYS);
        let (Some(ask), Some(gateway)) = (begun, self.gateways.get(number).cloned()) else {
            return;
        };
        let world = self.world.clone();
        let name = format!("gateway {number}, an answer to {execution_id}");
        let removals = self.world.facts().removals;
        let work = async move {
            let answer = match ask {
                Ask::Approval(hash) => decide(&world, &gateway, &execution_id, &hash).await,
                Ask::ClientTool => bring(&world, &gateway, &execution_id).await,
            };
            // An answer to a call of a removed conversation counts no more.
            if let Some(answer) = answer
                && world.facts().removals == removals
            {
                told(&world, &execution_id, &answer);
            }
        };
        let owner = Owner::Gateway(number);
        self.world.schedule.spawn(name, owner, work).await;
    }

    /// Checks that the store has the answers that were told to be stored.
    pub(super) async fn check_told(&self, conversation_id: &str) -> anyhow::Result<()> {
        let told = self.world.people().all_told();
        let access = Access::tenant("default");
        self.check_overruled().await;
        for (execution_id, answer) in told {
            let call = self
                .world
                .store
                .outside_tool(&access, conversation_id, &execution_id)
                .await?;
            let stored = call.map(|call| {
                let record = call.record;
                match record.approval {
                    ApprovalState::NotNeeded => record
                        .end
                        .map_or_else(String::new, |end| end.result.as_str().to_owned()),
                    approval => approval.to_string(),
                }
            });
            if stored.as_deref() != Some(answer.as_str()) {
                let text = format!("{execution_id} was told to be {answer}, and is {stored:?}");
                self.world.facts().violation(text);
            }
        }
        Ok(())
    }

    /// Checks that no decision is stored which a newer request has overruled.
    async fn check_overruled(&self) {
        let decided = self.world.people().decided();
        for execution_id in decided {
            let Some(stored) = oracles::approval(&self.world, &execution_id).await else {
                continue;
            };
            if self.world.people().is_overruled(&execution_id, &stored) {
                let text = format!(
                    "{execution_id} is {stored} after a newer request with another decision"
                );
                self.world.facts().violation(text);
            }
        }
    }
}

/// A person answers an approval. After a request without an answer, the person may have another mind. Returns the answer
/// that was told to be stored.
async fn decide(
    world: &World,
    gateway: &Gateway,
    execution_id: &str,
    input_hash: &str,
) -> Option<String> {
    let path = format!("/conversations/{CONVERSATION}/approvals/{execution_id}");
    for _try in 0..MAX_TRIES {
        let (decision, outcome) = if world.choices().percent(50) {
            (Decision::Approve, ApprovalState::Approved)
        } else {
            (Decision::Deny, ApprovalState::Denied)
        };
        let body = json!({"decision": decision.as_str(), "input_hash": input_hash});
        world
            .schedule
            .tell(format!("a person: {decision} {execution_id}"));
        let begun_at = {
            let mut people = world.people();
            people.request_begins(execution_id, outcome.as_str())
        };
        let answered = post(gateway, &path, &body).await;
        let stored = oracles::approval(world, execution_id).await;
        let still_waits = stored.as_deref() == Some(ApprovalState::Pending.as_str());
        let is_unanswered = still_waits && matches!(answered, Ok((503, _)));
        world
            .people()
            .request_ends(execution_id, begun_at, is_unanswered);
        match answered {
            Ok((200, _)) => return Some(outcome.to_string()),
            Ok((404 | 503, _)) | Err(_) => world.schedule.step("a person thinks again").await,
            Ok(_) => return None,
        }
    }
    None
}

/// A client brings the result of a client tool, and brings the result again after a request without an answer. Returns the
/// result that was told to be stored.
async fn bring(world: &World, gateway: &Gateway, execution_id: &str) -> Option<String> {
    let path = format!("/conversations/{CONVERSATION}/client-tools/{execution_id}");
    let result = world.choices().below(100);
    let body = json!({"result": result});
    for _try in 0..MAX_TRIES {
        match post(gateway, &path, &body).await {
            Ok((202, _)) => return Some(result.to_string()),
            Ok((404 | 503, _)) | Err(_) => world.schedule.step("a client tries again").await,
            Ok(_) => return None,
        }
    }
    None
}

fn told(world: &World, execution_id: &str, answer: &str) {
    world
        .schedule
        .tell(format!("{execution_id} is told to be {answer}"));
    if let Some(before) = world.people().told(execution_id, answer) {
        let text = format!("{execution_id} was told to be {before}, and then to be {answer}");
        world.facts().violation(text);
    }
}
