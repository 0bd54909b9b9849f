//! How a conversation is named by its tenant, and which id it has for everybody else.
//!
//! A tenant names its conversations as it likes, so two tenants may use one name. Everything that all tenants share has
//! the id of a conversation: the tables, the workflow ids, the live texts. It is made from both here, and only here.

use crate::{
    ids::{self, workflow_id},
    words::DEFAULT_TENANT,
};

/// Stands between a tenant and a name. Neither of them may have it (`ids::is_valid`), so an id comes apart in one way, and
/// it is not the `/` of the workflow ids of sub-agents.
const SEPARATOR: char = '~';

/// A conversation, as its tenant names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationName<'a> {
    /// The tenant.
    pub tenant_id: &'a str,
    /// The name, which is unique in the tenant. The API, the clients and the tools call it the id of the conversation.
    pub name: &'a str,
}

impl<'a> ConversationName<'a> {
    /// Returns the id of a new conversation: its name in the default tenant, and `<tenant>~<name>` in any other one.
    pub fn id(&self) -> String {
        if self.tenant_id == DEFAULT_TENANT {
            self.name.to_owned()
        } else {
            self.qualified_id()
        }
    }

    /// Returns `<tenant>~<name>` in every tenant. A new conversation of the default tenant has this id when another tenant
    /// has a conversation from before ids had a tenant, whose id is this name.
    pub fn qualified_id(&self) -> String {
        format!("{}{SEPARATOR}{}", self.tenant_id, self.name)
    }

    /// Takes an id with a tenant apart; `None` for an id without one, and for a text that is no id.
    pub fn of_qualified_id(id: &'a str) -> Option<Self> {
        let (tenant_id, name) = id.split_once(SEPARATOR)?;
        let is_id = ids::is_valid(tenant_id) && ids::is_valid(name);
        is_id.then_some(Self { tenant_id, name })
    }

    /// Returns the name of the conversation with this id.
    pub fn of_id(id: &str) -> &str {
        ConversationName::of_qualified_id(id).map_or(id, |named| named.name)
    }

    /// Checks that a conversation with this id may belong to a tenant; an error says why not. An id without a tenant may be
    /// that of any tenant's conversation from before ids had one, so only the store knows whose it is.
    pub fn check_id(id: &str, tenant_id: &str) -> Result<(), String> {
        if ids::is_valid(id) {
            return Ok(());
        }
        let Some(named) = ConversationName::of_qualified_id(id) else {
            return Err(
                "`conversation_id` must be 1 to 100 letters, digits or -_.: characters, behind `<tenant>~` in \
                 every tenant but the default one"
                    .to_owned(),
            );
        };
        if named.tenant_id == tenant_id {
            return Ok(());
        }
        Err(format!(
            "`conversation_id` is `{id}`, which is a conversation of the tenant `{}`, and `tenant_id` is `{tenant_id}`",
            named.tenant_id
        ))
    }

    /// Says which id the conversation of a tenant has, to whoever has started its workflow under another one.
    pub fn expected(&self, id: &str) -> String {
        format!(
            "The conversation `{}` of the tenant `{}` has the id `{id}`: its workflow id is `{}`.",
            self.name,
            self.tenant_id,
            workflow_id(id)
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named<'a>(tenant_id: &'a str, name: &'a str) -> ConversationName<'a> {
        ConversationName { tenant_id, name }
    }

    #[test]
    fn the_default_tenant_keeps_its_short_ids() {
        // These strings are in databases and histories: a change here loses conversations.
        assert_eq!(named("default", "c").id(), "c");
        assert_eq!(named("default", "c").qualified_id(), "default~c");
        assert_eq!(named("acme", "c").id(), "acme~c");
        assert_eq!(
            ["c", "acme~c", "~c"].map(ConversationName::of_id),
            ["c", "c", "~c"]
        );
        assert_eq!(workflow_id(&named("acme", "c").id()), "conversation-acme~c");
    }

    #[test]
    fn an_id_belongs_to_the_tenant_that_it_names() {
        for (id, tenant) in [
            ("c", "default"),
            ("c", "acme"),
            ("acme~c", "acme"),
            ("default~c", "default"),
        ] {
            assert_eq!(
                ConversationName::check_id(id, tenant),
                Ok(()),
                "{id} {tenant}"
            );
        }
        for (id, tenant) in [
            ("acme~c", "default"),
            ("acme~c", "acm"),
            ("default~c", "acme"),
            ("acme~c~d", "acme"),
            ("~c", ""),
            ("acme~", "acme"),
            ("a/b", "acme"),
            ("", "acme"),
        ] {
            assert!(
                ConversationName::check_id(id, tenant).is_err(),
                "{id} {tenant}"
            );
        }
    }

    proptest! {
        #[test]
        fn two_names_have_one_id_only_when_they_are_the_same(
            tenants in prop::array::uniform2("default|[a-c.:_-]{1,3}"), names in prop::array::uniform2("[a-c.:_-]{1,3}"),
        ) {
            let [one, other] = [named(&tenants[0], &names[0]), named(&tenants[1], &names[1])];
            prop_assert_eq!(one.id() == other.id(), one == other);
            let id = one.qualified_id();
            prop_assert_eq!(ConversationName::of_qualified_id(&id), Some(one));
            prop_assert!(!ids::is_valid(&id), "no name is an id with a tenant");
        }

        #[test]
        fn any_text_is_the_id_of_a_tenants_conversation_or_is_refused(id in "\\PC{0,40}", tenant in "[a-z]{0,3}") {
            if ConversationName::check_id(&id, &tenant).is_ok() {
                let name = ConversationName::of_qualified_id(&id).map_or(id.as_str(), |named| named.name);
                prop_assert!(ids::is_valid(name));
            }
        }
    }
}
