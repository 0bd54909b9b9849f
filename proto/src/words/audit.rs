//! Words of the audit trail: what was done, by whom, to what, and what became of it.

words! {
    /// What an entry of the audit trail says was done.
    pub enum AuditAction {
        /// An API key was made.
        KeyCreated = "key_created",
        /// An API key was revoked.
        KeyRevoked = "key_revoked",
        /// The API keys of a tenant, or of all, were listed by the API.
        KeysListed = "keys_listed",
        /// A browser session was opened.
        SessionOpened = "session_opened",
        /// A browser session was ended by its bearer.
        SessionEnded = "session_ended",
        /// A credential was refused, or an address had to wait because of too many of them.
        CredentialRefused = "credential_refused",
        /// A credential that holds does not allow what was asked for.
        ScopeRefused = "scope_refused",
        /// A conversation was deleted with all that belongs to it.
        ConversationDeleted = "conversation_deleted",
        /// Old conversations were removed.
        RetentionRun = "retention_run",
        /// An approval was answered.
        ApprovalAnswered = "approval_answered",
        /// A turn went on whose workflow was gone.
        TurnResumed = "turn_resumed",
        /// A turn was told to end.
        TurnCancelled = "turn_cancelled",
        /// A process has read its configuration, and works by it.
        ConfigurationLoaded = "configuration_loaded",
        /// The audit trail was exported by the API.
        AuditExported = "audit_exported",
    }
}

words! {
    /// How somebody proved who they are, of whom the audit trail tells.
    pub enum AuditActorKind {
        /// They used an API key.
        Key = "key",
        /// They used a browser session.
        Session = "session",
        /// They used a token of an identity provider.
        Token = "token",
        /// Whoever can reach the database, with a command.
        Operator = "operator",
        /// They did not: a gateway asked for no credential, or the credential does not hold.
        Anonymous = "anonymous",
        /// A process of Everturn itself.
        Process = "process",
    }
}

words! {
    /// The kind of a thing that something was done to.
    pub enum AuditTargetKind {
        /// An API key.
        Key = "key",
        /// A browser session.
        Session = "session",
        /// A conversation.
        Conversation = "conversation",
        /// A tool execution.
        ToolExecution = "tool_execution",
        /// A configuration, by its hash.
        Configuration = "configuration",
        /// Everything of a tenant, or of all when there is no id.
        Tenant = "tenant",
        /// An endpoint of the API, by its method and path.
        Endpoint = "endpoint",
    }
}

words! {
    /// What became of what the audit trail tells of.
    pub enum AuditOutcome {
        /// It was asked for, and its end is another entry.
        Requested = "requested",
        /// It was done.
        Done = "done",
        /// It was refused.
        Refused = "refused",
    }
}
