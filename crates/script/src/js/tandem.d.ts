// Types of the built-in module `tandem` (alias `zupa`), for editors. Nothing of this exists at run time.

declare module 'tandem' {
  export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

  /** A JSON Schema literal, or any object that implements Standard Schema (zod, valibot, arktype, …). */
  export type Schema = Record<string, unknown> | StandardSchema;

  export interface StandardSchema<Output = unknown> {
    readonly '~standard': {
      readonly version: 1;
      readonly vendor: string;
      readonly validate: (value: unknown) => unknown;
      readonly types?: { readonly output: Output };
    };
  }

  // --- data

  export interface User {
    id: string;
    externalUserId: string;
    displayName?: string;
    preferences?: Record<string, unknown>;
    tags?: string[];
    createdAt?: string;
    lastActiveAt?: string;
  }

  export interface SessionKv {
    get<T = any>(key: string): Promise<T | null>;
    set(key: string, value: unknown): Promise<void>;
    delete(key: string): Promise<void>;
    all(): Promise<Record<string, any>>;
  }

  export interface Session {
    id: string;
    agentId: string;
    userId: string;
    startedAt: string;
    lastActiveAt: string;
    endedAt: string | null;
    /** The text under the session key `summary`. */
    summary: string | null;
    messageCount: number;
    /** The user's last sessions that ended with a summary, the oldest first: as many as `maxEpisodicMemory` says. */
    earlier: Array<{ id: string; startedAt: string; endedAt: string; summary: string }>;
    metadata?: Record<string, unknown>;
    readonly kv: SessionKv;
    /** Alias of `kv`. */
    readonly agentState: SessionKv;
  }

  export interface InboundMessage {
    messageId: string;
    from: string;
    body: string;
    type?: string;
    hasMedia?: boolean;
    source: 'transport' | 'ui_channel';
    clientId?: string;
    senderProfile?: { displayName?: string };
  }

  export interface Actor {
    id: string;
    role?: string;
    channel: string;
    metadata?: Record<string, unknown>;
  }

  export interface Transport {
    sendText(to: string, text: string): Promise<void>;
    sendMessage(message: { to: string; text?: string; [field: string]: unknown }): Promise<void>;
  }

  export interface DomainStore {
    getUser(userId?: string): Promise<User | null>;
    updateUser(patch: Partial<User>): Promise<User>;
    getMessages(query?: { limit?: number; before?: string }): Promise<Array<{ id: string; role: string; text: string; at: string }>>;
  }

  export interface HttpResponse {
    status: number;
    ok: boolean;
    headers: Record<string, string>;
    body: string;
    text(): Promise<string>;
    json<T = any>(): Promise<T>;
  }

  // --- contexts

  /** The schedule that began a turn. */
  export interface ScheduleContext {
    scheduleId: string;
    triggerType: 'cron' | 'once';
    scheduledFor: string;
    /** Raised each time another process took the run over. */
    runAttempt: number;
    flowId: string;
    campaignId?: string;
    segmentId?: string;
    /** In turns of a campaign. */
    recipientUserExternalId?: string;
    metadata?: Record<string, any>;
  }

  export interface CommonContext {
    readonly agentId: string;
    readonly user: User;
    readonly session: Session;
    /** Alias of `session.kv`. */
    readonly agentState: SessionKv;
    /** The message that caused the current turn. Absent for timers, resolutions and scheduled turns. */
    readonly inbound?: InboundMessage;
    readonly language: string;
    readonly replyTarget: string;
    readonly config: any;
    readonly requestId: string;
    readonly turnId: string;
    readonly trigger?: string;
    readonly state?: any;
    /** Why the turn began, in scheduled turns. */
    readonly schedule?: ScheduleContext;
    /** Only for handlers of commands with `access: 'admin'`. */
    readonly actor?: Actor;
    readonly idempotencyKey?: string;
    readonly resources: { transport: Transport; domainStore: DomainStore };
    endSession(): Promise<void>;
    getActiveFlowState(): Promise<Record<string, any> | null>;
  }

  export interface AgentContext extends CommonContext {
    /** Sends a text beside the conversation. It does not pass `beforeResponse`. */
    say(text: string): Promise<void>;
    readonly http: { fetch(url: string, options?: { method?: string; headers?: Record<string, string>; body?: string }): Promise<HttpResponse> };
  }

  export interface FlowContext<Input = any> extends CommonContext, FlowHelpers {
    readonly input: Input;
    /** Replies by the key of their `ask`. */
    readonly answers: Record<string, any>;
    readonly flowId: string;
    readonly flowRunId: string;
    readonly attempt: number;
    readonly lastInterrupt?: { id: string; kind: string; outcome: string; text?: string; at: string };
    consumeQueued(ids?: string[]): Promise<void>;
  }

  /** Inside `processBeforeForward`: reads only. */
  export interface HookContext {
    readonly user: User;
    readonly session: { readonly kv: Pick<SessionKv, 'get' | 'all'> };
    readonly input: any;
    readonly answers: Record<string, any>;
  }

  // --- effects

  /** A text that is sent when nobody has answered after so many seconds. */
  export interface Reminder {
    afterSeconds: number;
    text: string;
  }

  export interface ConfirmOptions {
    question: string;
    id?: string;
    timeoutSeconds?: number;
    positiveKeywords?: string[];
    negativeKeywords?: string[];
    /** The reply is read as a value of this schema; a refusal gives `null`. */
    responseSchema?: Schema;
    reminders?: Reminder[];
  }

  export interface EscalateOptions {
    mode: 'async_resolution' | 'live_takeover';
    reason: string;
    id?: string;
    priority?: 'low' | 'normal' | 'high' | 'critical';
    /** Shown to whoever decides. */
    metadata?: Record<string, unknown>;
    timeoutSeconds?: number;
    /** How many people have to approve; one rejection closes it. */
    requiredApprovals?: number;
    approvers?: string[];
    queue?: string;
    assignee?: string;
  }

  export interface WaitOptions {
    waitFor: 'admin_resolution' | 'live_handback' | 'confirm_response' | 'timeout';
    timeoutSeconds?: number;
  }

  /** What a wait returns. `outcome` says which of the fields are there. */
  export interface WaitResult {
    outcome: 'resolved' | 'handed_back' | 'positive' | 'negative' | 'elapsed' | 'timed_out' | 'canceled';
    approved?: boolean;
    timedOut?: boolean;
    escalationId?: string;
    /** A text of whoever decided. It is not sent to the user by itself. */
    message?: string;
    /** Changes of whoever approved. */
    actionData?: any;
    resolvedBy?: string;
    resolvedAt?: string;
    by?: string;
    note?: string;
    transcript?: Array<{ from: 'user' | 'human'; text: string; at: string }>;
    value?: any;
    text?: string;
    reason?: string;
    at?: string;
    endedAt?: string;
    /** Messages that arrived meanwhile, with `asyncPendingPolicy: { behavior: 'queue' }`. */
    queuedInbound?: Array<{ messageId: string; text: string; receivedAt: string }>;
  }

  export interface ProxyStartOptions {
    target: string;
    mode?: 'mirror' | 'shadow';
    replace?: boolean;
    timeoutSeconds?: number;
    forwardUserMessages?: boolean;
    forwardAdminMessages?: boolean;
    autoPrefix?: boolean;
  }

  export interface AdminProxyInput {
    proxyId: string;
    target: string;
    text: string;
    raw?: unknown;
  }

  export interface AdminProxyDecision {
    forwardToUser?: boolean;
    text?: string;
    endProxy?: boolean;
    reason?: string;
  }

  export interface ProxyWaitOptions {
    timeoutSeconds?: number;
    timeoutBehavior?: 'continue' | 'end_proxy' | 'fallback_escalation';
    timeoutMessageToUser?: string;
    processBeforeForward?: (input: AdminProxyInput, ctx: HookContext) => Promise<AdminProxyDecision>;
  }

  /** What starting a bridge returns. */
  export interface ProxyStarted {
    proxyId: string;
    /** The target that is used: a fallback while the named one is closed. */
    target: string;
    mode: 'mirror' | 'shadow';
    startedAt: string;
    /** The bridge whose place it took. */
    replaced?: string;
  }

  /** What a wait for input returns. `outcome` says which of the fields are there. */
  export interface ProxyWaitResult {
    outcome: 'admin_input' | 'timed_out' | 'stopped';
    proxyId: string;
    target?: string;
    inputId?: string;
    /** What the admin wrote. */
    text?: string;
    forwarded?: boolean;
    /** What the user got. */
    forwardedText?: string;
    /** The filter stopped the bridge. */
    ended?: boolean;
    reason?: string;
    actor?: { id: string; role?: string | null; channel: string };
    at?: string;
    timedOut?: boolean;
    behavior?: 'continue' | 'end_proxy' | 'fallback_escalation';
    escalationId?: string;
  }

  export interface WorkflowOptions {
    /** `false`: the flow goes on at once. */
    wait?: boolean;
    timeoutSeconds?: number;
    cancelOnTimeout?: boolean;
    /** Questions of the workflow are asked in this conversation. */
    surfaceInterrupts?: boolean;
  }

  export type FlowEffect =
    | { type: 'say'; text: string }
    | { type: 'ask'; key: string; text: string; reminders?: Reminder[] }
    | { type: 'tool'; name: string; args: Record<string, unknown>; onError?: 'throw' | 'return' }
    | { type: 'handoff'; to: string; input?: unknown }
    | { type: 'end'; reason?: string }
    | ({ type: 'interrupt.confirm' } & ConfirmOptions)
    | ({ type: 'interrupt.escalate' } & EscalateOptions)
    | ({ type: 'interrupt.wait' } & WaitOptions)
    | ({ type: 'interrupt.proxy.start' } & ProxyStartOptions)
    | ({ type: 'interrupt.proxy.wait' } & ProxyWaitOptions)
    | { type: 'interrupt.proxy.stop'; reason?: string }
    | ({ type: 'workflow.run'; workflowId: string; input?: unknown } & WorkflowOptions);

  /** What a helper returns: `yield` it, or `yield*` it for a typed result. Never `await` it. */
  export type Yieldable<Result> = FlowEffect & { [Symbol.asyncIterator](): AsyncGenerator<FlowEffect, Result, any> };

  export interface FlowHelpers {
    say(text: string | { text: string }): Yieldable<void>;
    ask(key: string | { key: string; text: string; reminders?: Reminder[] }, text?: string): Yieldable<string>;
    tool(name: string | { name: string; args: Record<string, unknown> }, args?: Record<string, unknown>, options?: { onError?: 'throw' | 'return' }): Yieldable<any>;
    handoff(to: string | { to: string; input?: unknown }, input?: unknown): Yieldable<never>;
    startFlow(flowId: string, input?: unknown): Yieldable<never>;
    end(reason?: string | { reason?: string }): Yieldable<never>;
    confirm(options: ConfirmOptions): Yieldable<any>;
    escalate(options: EscalateOptions): Yieldable<{ escalationId: string; mode: string; status: string; createdAt: string }>;
    wait(options: WaitOptions): Yieldable<WaitResult>;
    proxyToAdmin(options: ProxyStartOptions): Yieldable<ProxyStarted>;
    proxyToAdmin(options: { stop: true; reason?: string }): Yieldable<{ stopped: boolean; proxyId?: string }>;
    waitForAdminInput(options?: ProxyWaitOptions): Yieldable<ProxyWaitResult>;
    runWorkflow(workflowId: string | { workflowId: string; input?: unknown }, input?: unknown, options?: WorkflowOptions): Yieldable<{ runId: string; status: string; output?: any; error?: any }>;
  }

  // --- errors that are thrown into a flow at the effect it yielded

  /** The effect was not performed. */
  export interface FlowEffectError extends Error {
    name: 'FlowEffectError';
    code: 'bad_effect' | 'escalation_open' | 'nothing_to_wait_for' | 'hitl_active' | 'proxy_active' | 'no_proxy' | 'unknown_target' | 'target_is_user' | string;
    /** The active bridge, with `proxy_active`. */
    proxyId?: string;
    problems?: string[];
  }

  /** A tool gave no result. With `onError: 'return'` the flow gets `{ ok: false, code, message }` instead. */
  export interface ToolError extends Error {
    name: 'ToolError';
    code: 'not_found' | 'invalid_args' | 'failed' | 'timeout' | 'outcome_unknown';
    tool?: string;
  }

  /** A confirmation was not answered, with `timeoutBehavior: 'throw'`. */
  export interface InterruptTimeout extends Error {
    name: 'InterruptTimeout';
    code: 'timed_out';
  }
}

// The contexts have names everywhere, also in files that import nothing.
type FlowContext<Input = any> = import('tandem').FlowContext<Input>;
type AgentContext = import('tandem').AgentContext;

declare module 'zupa' {
  export * from 'tandem';
}
