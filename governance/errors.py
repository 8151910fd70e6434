"""Every error the product raises, in one tree.

    GovernanceError
    ├── ConfigurationError          what the caller set up is wrong; exit 2
    │   ├── ContractInvalid         a contract file or model
    │   ├── KeyInvalid              a signing or verifying key
    │   ├── NameClash               another package named `governance` is in the way
    │   ├── SchemaMissing           the database has no governance schema
    │   ├── SchemaOutdated          the database is older than the code
    │   └── SchemaNewer             the database is newer than the code
    ├── Unavailable                 a server cannot be reached; try again
    │   ├── DatabaseUnavailable
    │   │   └── ConnectionLost      in the middle of a transaction
    │   ├── DatabaseBusy            a lock, a deadlock or a timeout
    │   ├── TemporalUnavailable
    │   ├── SealerRunning           another sealer holds this log
    │   └── SinkUnavailable         where checkpoints are kept
    ├── NotFound                    the thing named does not exist
    │   ├── ApprovalUnknown
    │   ├── ContractUnknown
    │   ├── ExecutionUnknown
    │   ├── FreezeUnknown
    │   └── RoleUnknown
    ├── DecisionRefused             a person may not decide this, or not now
    │   ├── ActorMustNotDecide
    │   ├── BarrierNotMet
    │   ├── AlreadyDecided
    │   │   └── AlreadyVoted        by this person; others are still asked
    │   ├── CannotRevoke            nothing is decided yet, or its step has begun
    │   ├── ApprovalExpired
    │   ├── ApprovalWithdrawn
    │   ├── ReasonRequired
    │   └── DigestMismatch
    ├── AdministrationRefused       an administrative act is not allowed
    ├── StepRefused                 a governed step must not run
    │   ├── ActorMissing
    │   ├── FlowNotActive
    │   ├── NotGoverned
    │   ├── ApprovalMissing
    │   ├── ApprovalMismatch
    │   ├── ApprovalRejected
    │   ├── ApprovalNotUsable
    │   ├── ApproverLostRole
    │   ├── ResumeDenied
    │   ├── StepEvicted
    │   ├── UnmatchedCall
    │   ├── AsyncCompletionUnsupported
    │   ├── Frozen
    │   └── Held                    not now; the workflow waits and calls again
    └── EvidenceError               stored or given evidence does not hold
        ├── ChainBroken             entries, links, leaves or roots differ
        │   └── LogRolledBack       the log is shorter than a checkpoint kept outside it
        └── NoteInvalid             a signed note or checkpoint

`code` is the stable word users, histories and entries see; `retryable` says whether the same call
may succeed later without anybody changing anything. The class docstring is the default message.
"""

from __future__ import annotations

from typing import ClassVar


class GovernanceError(Exception):
    """Governance failed."""

    code: ClassVar[str] = "governance_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        """Keep the message and what to do about it.

        Args:
            message: What was wrong, naming the thing. The class docstring by default.
            hint: What the reader can do next, one sentence.
        """
        self.message = message or (type(self).__doc__ or self.code).strip()
        self.hint = hint
        super().__init__(self.message if hint is None else f"{self.message} {hint}")


class ConfigurationError(GovernanceError):
    """The configuration is not usable."""

    code = "configuration_invalid"


class ContractInvalid(ConfigurationError):
    """The contract is not valid."""

    code = "contract_invalid"


class KeyInvalid(ConfigurationError):
    """The key is not usable."""

    code = "key_invalid"


class NameClash(ConfigurationError):
    """Another package named `governance` is in the way."""

    code = "name_clash"


class SchemaMissing(ConfigurationError):
    """The database has no governance schema."""

    code = "schema_missing"


class SchemaOutdated(ConfigurationError):
    """The database schema is older than this code."""

    code = "schema_outdated"


class SchemaNewer(ConfigurationError):
    """The database schema is newer than this code."""

    code = "schema_newer"


class Unavailable(GovernanceError):
    """A server cannot be reached."""

    code = "unavailable"
    retryable = True


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached."""

    code = "database_unavailable"


class ConnectionLost(DatabaseUnavailable):
    """The connection was lost during a transaction."""

    code = "connection_lost"


class DatabaseBusy(Unavailable):
    """The database did not get to it in time."""

    code = "database_busy"


class TemporalUnavailable(Unavailable):
    """The Temporal server cannot be reached."""

    code = "temporal_unavailable"


class SealerRunning(Unavailable):
    """Another sealer is running on this log."""

    code = "sealer_running"


class SinkUnavailable(Unavailable):
    """Checkpoints cannot be kept."""

    code = "sink_unavailable"


class NotFound(GovernanceError):
    """There is no such thing."""

    code = "not_found"


class ApprovalUnknown(NotFound):
    """There is no such approval."""

    code = "approval_unknown"


class ContractUnknown(NotFound):
    """There is no such contract."""

    code = "contract_unknown"


class ExecutionUnknown(NotFound):
    """There is no such execution."""

    code = "execution_unknown"


class FreezeUnknown(NotFound):
    """There is no such freeze."""

    code = "freeze_unknown"


class RoleUnknown(NotFound):
    """There is no such role."""

    code = "role_unknown"


class DecisionRefused(GovernanceError):
    """This decision is not accepted."""

    code = "decision_refused"


class ActorMustNotDecide(DecisionRefused):
    """The person for whom the execution was started must not decide."""

    code = "actor_must_not_decide"


class BarrierNotMet(DecisionRefused):
    """The decider holds none of the roles this approval asks for."""

    code = "barrier_not_met"


class AlreadyDecided(DecisionRefused):
    """This approval has been decided."""

    code = "already_decided"


class AlreadyVoted(AlreadyDecided):
    """This person has approved; others are still asked."""

    code = "already_voted"


class CannotRevoke(DecisionRefused):
    """There is no decision to revoke, or its step has begun."""

    code = "cannot_revoke"


class ApprovalExpired(DecisionRefused):
    """This approval can no longer be decided."""

    code = "approval_expired"


class ApprovalWithdrawn(DecisionRefused):
    """This approval was withdrawn."""

    code = "approval_withdrawn"


class ReasonRequired(DecisionRefused):
    """A rejection needs a reason."""

    code = "reason_required"


class DigestMismatch(DecisionRefused):
    """The input is not the one that was shown."""

    code = "digest_mismatch"


class AdministrationRefused(GovernanceError):
    """This administrative act is not allowed."""

    code = "administration_refused"


class StepRefused(GovernanceError):
    """This step must not run."""

    code = "step_refused"


class ActorMissing(StepRefused):
    """A governed flow was started without an actor."""

    code = "actor_missing"


class FlowNotActive(StepRefused):
    """No contract is active for this flow."""

    code = "flow_not_active"


class NotGoverned(StepRefused):
    """A governed step was called from a run that no contract governs."""

    code = "not_governed"


class ApprovalMissing(StepRefused):
    """This step needs an approval and has none."""

    code = "approval_missing"


class ApprovalMismatch(StepRefused):
    """The step's input is not the approved one."""

    code = "approval_mismatch"


class ApprovalRejected(StepRefused):
    """The approval was rejected."""

    code = "approval_rejected"


class ApprovalNotUsable(StepRefused):
    """The approval expired, was withdrawn or was revoked."""

    code = "approval_not_usable"


class ApproverLostRole(StepRefused):
    """Too few of those who approved still hold a role that may."""

    code = "approver_lost_role"


class ResumeDenied(StepRefused):
    """The original actor no longer satisfies the flow's resume policy."""

    code = "resume_denied"


class StepEvicted(StepRefused):
    """Another attempt took this step over."""

    code = "step_evicted"


class UnmatchedCall(StepRefused):
    """The contract denies calls that match no step."""

    code = "unmatched_call"


class AsyncCompletionUnsupported(StepRefused):
    """A governed step cannot be completed from outside its activity."""

    code = "async_completion_unsupported"


class Frozen(StepRefused):
    """An administrator has stopped this flow."""

    code = "frozen"

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, seconds: float = 0.0
    ) -> None:
        """As its base; `seconds` is for how long it has been frozen."""
        super().__init__(message, hint=hint)
        self.seconds = seconds


class Held(StepRefused):
    """The step cannot run now: another attempt holds it, it is frozen or the database is away."""

    code = "governance_held"
    retryable = True


class EvidenceError(GovernanceError):
    """The evidence does not hold."""

    code = "evidence_invalid"


class ChainBroken(EvidenceError):
    """The chain does not hold."""

    code = "chain_broken"


class LogRolledBack(ChainBroken):
    """The log is shorter than a checkpoint that was kept outside it."""

    code = "log_rolled_back"


class NoteInvalid(EvidenceError):
    """The signed note does not hold."""

    code = "note_invalid"
