//! Words of the audit trail: actions, actors, targets and outcomes.

words! {
    /// The action that an entry of the audit trail records.
    pub enum AuditAction {
        /// An API key was made.
        KeyCreated = "key_created",
        /// An API key was revoked.
        KeyRevoked = "key_revoked",
        /// A client of the API or an operator listed the API keys of a tenant, or of every tenant.
        KeysListed = "keys_listed",
        /// A client of the API listed the tenants.
        TenantsListed = "tenants_listed",
        /// A client of the API read the usage of a tenant, or of every tenant.
        UsageRead = "usage_read",
        /// A client of the API read the failures of a tenant, or of every tenant.
        FailuresRead = "failures_read",
        /// A client of the API read the audit trail in pages.
        AuditRead = "audit_read",
        /// The codec server decrypted payloads of Temporal.
        PayloadsDecoded = "payloads_decoded",
        /// The codec server encrypted payloads for Temporal.
        PayloadsEncoded = "payloads_encoded",
        /// A browser session was opened.
        SessionOpened = "session_opened",
        /// The bearer ended a browser session.
        SessionEnded = "session_ended",
        /// An admin ended the sessions and tokens of an owner.
        OwnerSessionsEnded = "owner_sessions_ended",
        /// An admin refused every credential of an owner.
        OwnerRefused = "owner_refused",
        /// An admin allowed a refused owner.
        OwnerAllowed = "owner_allowed",
        /// A client of the API listed the owners with refused credentials.
        OwnersListed = "owners_listed",
        /// A credential was refused, or an address had to wait after too many refused credentials.
        CredentialRefused = "credential_refused",
        /// A valid credential does not allow the requested action.
        ScopeRefused = "scope_refused",
        /// A conversation was deleted with its messages, events and other data.
        ConversationDeleted = "conversation_deleted",
        /// Old conversations were removed.
        RetentionRun = "retention_run",
        /// An approval was answered.
        ApprovalAnswered = "approval_answered",
        /// A person settled the unknown outcome of a tool call.
        OutcomeSettled = "outcome_settled",
        /// A turn continued after the loss of its workflow.
        TurnResumed = "turn_resumed",
        /// A failed turn was retried.
        TurnRetried = "turn_retried",
        /// A turn was told to end.
        TurnCancelled = "turn_cancelled",
        /// A process has read its configuration, and works with the configuration.
        ConfigurationLoaded = "configuration_loaded",
        /// A person began to consent to the use of a tool server in the person's name.
        ConsentBegun = "consent_begun",
        /// A person consented to the use of a tool server in the person's name.
        ConsentGiven = "consent_given",
        /// A person ended the use of a tool server in the person's name.
        ConsentEnded = "consent_ended",
        /// A client of the API exported the audit trail.
        AuditExported = "audit_exported",
    }
}

words! {
    /// The means by which the actor of an entry proved an identity.
    pub enum AuditActorKind {
        /// The actor used an API key.
        Key = "key",
        /// The actor used a browser session.
        Session = "session",
        /// The actor used a token of an identity provider.
        Token = "token",
        /// The actor used a command that needs access to the database or to Temporal.
        Operator = "operator",
        /// The actor proved no identity: the gateway asked for no credential, or the credential is not valid.
        Anonymous = "anonymous",
        /// A process of Everturn.
        Process = "process",
    }
}

words! {
    /// The kind of the target of an action.
    pub enum AuditTargetKind {
        /// An API key.
        Key = "key",
        /// A browser session.
        Session = "session",
        /// A conversation.
        Conversation = "conversation",
        /// A tool execution.
        ToolExecution = "tool_execution",
        /// A configuration, named by its hash.
        Configuration = "configuration",
        /// Everything of a tenant; everything of every tenant when the entry has no id.
        Tenant = "tenant",
        /// An owner of conversations: the subject of the owner's tokens.
        Owner = "owner",
        /// A tool server, named by its name in the configuration.
        ToolServer = "tool_server",
        /// An endpoint of the API, named by its method and path.
        Endpoint = "endpoint",
    }
}

words! {
    /// The outcome of an action in the audit trail.
    pub enum AuditOutcome {
        /// The action was requested, and another entry records its end.
        Requested = "requested",
        /// The action was done.
        Done = "done",
        /// The action was refused.
        Refused = "refused",
    }
}
