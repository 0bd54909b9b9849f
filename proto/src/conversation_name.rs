//! The tenant's name for a conversation, and the conversation's id outside the tenant.
//!
//! A tenant chooses the names of its conversations freely, so two tenants may use an equal name. Everything shared by
//! tenants (the tables, the workflow ids, the live texts) uses the conversation's id. Only this file makes the id from
//! the tenant and the name.

use crate::{
    ids::{self, workflow_id},
    words::DEFAULT_TENANT,
};

/// The separator between a tenant and a name. Neither part may contain the separator (`ids::is_valid`), so an id splits
/// in only one way. The separator differs from the `/` in the workflow ids of sub-agents.
const SEPARATOR: char = '~';

/// A conversation, identified by the tenant and by the tenant's name for the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationName<'a> {
    /// The tenant.
    pub tenant_id: &'a str,
    /// The name, unique in the tenant. The API, the clients and the tools call the name the id of the conversation.
    pub name: &'a str,
}

impl ConversationName<'_> {
    /// Returns the conversation's id: the name in the default tenant, and `<tenant>~<name>` in every further tenant.
    pub fn id(&self) -> String {
        if self.tenant_id == DEFAULT_TENANT {
            self.name.to_owned()
        } else {
            format!("{}{SEPARATOR}{}", self.tenant_id, self.name)
        }
    }

    /// Returns the name of the conversation with the id.
    pub fn of_id(id: &str) -> &str {
        id.split_once(SEPARATOR).map_or(id, |(_, name)| name)
    }

    /// Checks that the id is the id of a conversation of the tenant; the error says why not.
    pub fn check_id(id: &str, tenant_id: &str) -> Result<(), String> {
        let (of, name) = id.split_once(SEPARATOR).unwrap_or((tenant_id, id));
        for part in [of, name] {
            ids::check(part).map_err(|reason| {
                format!(
                    "`conversation_id` {reason}, behind `<tenant>~` in every tenant but the default tenant"
                )
            })?;
        }
        if of != tenant_id {
            return Err(format!(
                "`conversation_id` is `{id}`, a conversation of the tenant `{of}`, but `tenant_id` is `{tenant_id}`"
            ));
        }
        let expected = ConversationName { tenant_id, name }.id();
        if id == expected {
            return Ok(());
        }
        Err(format!(
            "the conversation `{name}` of the tenant `{tenant_id}` has the id `{expected}` and the workflow id `{}`",
            workflow_id(&expected)
        ))
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
        assert_eq!(named("acme", "c").id(), "acme~c");
        assert_eq!(["c", "acme~c"].map(ConversationName::of_id), ["c", "c"]);
        assert_eq!(workflow_id(&named("acme", "c").id()), "conversation-acme~c");
    }

    #[test]
    fn an_id_belongs_to_the_tenant_that_it_names() {
        for (id, tenant) in [("c", "default"), ("acme~c", "acme")] {
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
            ("c", "acme"),
            ("default~c", "default"),
            ("acme~c~d", "acme"),
            ("~c", ""),
            ("acme~", "acme"),
            ("a/b", "acme"),
            ("acme~..", "acme"),
            (".", "default"),
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
            tenants in prop::array::uniform2("default|[a-c:_-][a-c.:_-]{0,2}"), names in prop::array::uniform2("[a-c:_-][a-c.:_-]{0,2}"),
        ) {
            let [one, other] = [named(&tenants[0], &names[0]), named(&tenants[1], &names[1])];
            prop_assert_eq!(one.id() == other.id(), one == other);
            let id = one.id();
            prop_assert_eq!(ConversationName::of_id(&id), one.name);
            prop_assert_eq!(ConversationName::check_id(&id, one.tenant_id), Ok(()));
            prop_assert_eq!(ConversationName::check_id(&id, other.tenant_id).is_ok(), one.tenant_id == other.tenant_id);
        }

        #[test]
        fn any_text_is_the_id_of_a_tenants_conversation_or_is_refused(id in "\\PC{0,40}", tenant in "[a-z]{0,3}") {
            if ConversationName::check_id(&id, &tenant).is_ok() {
                prop_assert!(ids::is_valid(ConversationName::of_id(&id)));
            }
        }
    }
}
