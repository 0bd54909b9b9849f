//! The tools of a request in the provider's form, and the way back of the model's calls.
//!
//! The history of a request has the provider's names, too: a model copies the names of its earlier calls.

use async_trait::async_trait;
use everturn_stream::Part;

use super::{
    adapted::adapt,
    keys::Keys,
    renamed::{Renamed, Side},
};
use crate::{
    error::ModelError,
    port::{ModelReply, ModelRequest, ReplyListener},
    profile::Profile,
    tool_choice::ToolChoice,
    tool_rules::ToolRules,
};

/// The tools of one request.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// The tools with changed names.
    changed: Vec<Changed>,
}

/// A tool whose name, or the name of one of its properties, was changed.
#[derive(Debug)]
struct Changed {
    own: String,
    shown: String,
    renamed: Renamed,
}

impl Offer {
    /// Changes a request into the provider's form. A tool that the provider would refuse is left out.
    pub(crate) fn of(request: &mut ModelRequest, profile: &Profile) -> Self {
        let rules = ToolRules::of(profile);
        let mut offer = Self::default();
        let mut taken: Vec<String> = Vec::with_capacity(request.tools.len());
        let own: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let (provider, model) = (&request.provider, &request.model);
        request.tools.retain_mut(|tool| {
            let adapted = match adapt(&tool.parameters, rules) {
                Ok(adapted) => adapted,
                Err(reason) => {
                    tracing::warn!(provider, model, tool = tool.name, %reason, "a tool is left out of a request");
                    return false;
                }
            };
            let mut shown = rules.tool_name(&tool.name);
            while shown != tool.name && (own.contains(&shown) || taken.contains(&shown)) {
                shown.insert(0, '_');
            }
            if shown != tool.name || !adapted.renamed.is_empty() {
                offer.changed.push(Changed {
                    own: tool.name.clone(),
                    shown: shown.clone(),
                    renamed: adapted.renamed,
                });
            }
            tool.parameters = (*adapted.schema).clone();
            tool.name.clone_from(&shown);
            taken.push(shown);
            true
        });
        offer.change_choice(request);
        offer.change_history(request, rules);
        offer
    }

    fn change_choice(&self, request: &mut ModelRequest) {
        if let Some(ToolChoice::Tool(name)) = &mut request.tool_choice
            && let Some(changed) = self.changed.iter().find(|it| it.own == *name)
        {
            name.clone_from(&changed.shown);
        }
    }

    fn change_history(&self, request: &mut ModelRequest, rules: ToolRules) {
        for call in request
            .messages
            .iter_mut()
            .flat_map(|message| &mut message.tool_calls)
        {
            match self.changed.iter().find(|it| it.own == call.tool_name) {
                Some(changed) => {
                    call.tool_name.clone_from(&changed.shown);
                    if let Some(input) = &mut call.tool_input {
                        *input = changed.renamed.shown(input);
                    }
                }
                // The tool is not offered any more.
                None => call.tool_name = rules.tool_name(&call.tool_name),
            }
        }
    }

    /// Returns a reply whose calls have the tools' own names.
    pub(crate) fn restored(&self, mut reply: ModelReply) -> ModelReply {
        for call in &mut reply.tool_calls {
            if let Some(changed) = self.shown(&call.tool_name) {
                call.tool_name.clone_from(&changed.own);
                call.arguments = changed.renamed.restored(&call.arguments);
            }
        }
        reply
    }

    fn shown(&self, name: &str) -> Option<&Changed> {
        self.changed.iter().find(|it| it.shown == name)
    }

    /// Returns a listener that gets the calls with the tools' own names.
    pub(crate) fn listener<'a>(&'a self, listener: &'a mut dyn ReplyListener) -> OwnNames<'a> {
        OwnNames {
            offer: self,
            listener,
            calls: Vec::new(),
        }
    }
}

/// A listener that gets the calls of a reply with the tools' own names.
pub(crate) struct OwnNames<'a> {
    offer: &'a Offer,
    listener: &'a mut dyn ReplyListener,
    /// The calls of the reply, by position. The first piece of a call has its name and a line break.
    calls: Vec<Option<Keys<'a>>>,
}

#[async_trait]
impl ReplyListener for OwnNames<'_> {
    async fn accepted(&mut self, response_id: &str) -> Result<(), ModelError> {
        self.listener.accepted(response_id).await
    }

    async fn made_again(&mut self) -> Result<(), ModelError> {
        self.calls.clear();
        self.listener.made_again().await
    }

    fn delta(&mut self, part: Part, piece: &str) {
        let Part::Call(position) = part else {
            return self.listener.delta(part, piece);
        };
        let position = usize::from(position);
        if let Some(call) = self.calls.get_mut(position) {
            match call {
                None => self.listener.delta(part, piece),
                Some(keys) => {
                    let piece = keys.push(piece);
                    if !piece.is_empty() {
                        self.listener.delta(part, &piece);
                    }
                }
            }
            return;
        }
        let (name, arguments) = piece.split_once('\n').unwrap_or((piece, ""));
        let changed = self.offer.shown(name);
        self.calls.resize_with(position, || None);
        match changed {
            None => {
                self.calls.push(None);
                self.listener.delta(part, piece);
            }
            Some(changed) => {
                let mut keys = Keys::new(&changed.renamed, Side::Own);
                let arguments = keys.push(arguments);
                self.calls
                    .push((!changed.renamed.is_empty()).then_some(keys));
                self.listener
                    .delta(part, &format!("{}\n{arguments}", changed.own));
            }
        }
    }
}
