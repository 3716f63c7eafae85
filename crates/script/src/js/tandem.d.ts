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
    summary: string | null;
    messageCount: number;
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
    readonly schedule?: Record<string, any>;
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
    | { type: 'workflow.run'; workflowId: string; input?: unknown; wait?: boolean; timeoutSeconds?: number; cancelOnTimeout?: boolean };

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
    proxyToAdmin(options: ProxyStartOptions | { stop: true; reason?: string }): Yieldable<any>;
    waitForAdminInput(options?: ProxyWaitOptions): Yieldable<any>;
    runWorkflow(workflowId: string | { workflowId: string; input?: unknown }, input?: unknown, options?: { wait?: boolean; timeoutSeconds?: number; cancelOnTimeout?: boolean }): Yieldable<{ runId: string; status: string; output?: any; error?: any }>;
  }

  // --- errors that are thrown into a flow at the effect it yielded

  /** The effect was not performed. */
  export interface FlowEffectError extends Error {
    name: 'FlowEffectError';
    code: 'bad_effect' | 'escalation_open' | 'nothing_to_wait_for' | 'hitl_active' | 'proxy_active' | 'no_proxy' | 'unknown_target' | string;
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

  // --- definitions

  export type FlowReturn = void | { reason?: string };
  export type FlowDefinition<Input = any> = (ctx: FlowContext<Input>) => AsyncGenerator<FlowEffect, FlowReturn, any>;

  export interface FlowRegistration<Input = any> {
    run: FlowDefinition<Input>;
    description?: string;
    inputSchema?: Schema;
    asTool?: boolean | { alias?: string };
  }

  export interface ToolDefinition<Args = any, Result = any> {
    name?: string;
    description?: string;
    parameters?: Schema;
    kind?: 'record' | 'http';
    url?: string;
    returns?: unknown;
    failTimes?: number;
    /** `false`: never called again when its outcome is unknown. */
    idempotent?: boolean;
    /** Somebody has to approve the model's call; a function of the arguments may decide. */
    approval?: 'user' | 'admin' | ((args: Args) => unknown);
    /** Before every attempt. A returned object replaces the arguments; an error keeps the tool from being called. */
    before?: (args: Args, ctx: AgentContext) => unknown;
    handler?: (args: Args, ctx: AgentContext) => Result | Promise<Result>;
    /** After the tool. A returned value replaces the result. */
    after?: (result: Result, ctx: AgentContext) => unknown;
  }

  export interface CommandDefinition<Args = any> {
    description?: string;
    access?: 'public' | 'admin';
    args?: Schema;
    handler?: (ctx: AgentContext, args: Args) => unknown;
    /** The flow that the command starts. */
    flow?: string;
  }

  export type BeforeLLMDecision =
    | void
    | { action: 'continue' }
    | { action: 'skip_llm'; draftReply?: string; structured?: unknown; reason?: string }
    | { action: 'route_flow'; flowId: string; input?: unknown; reason?: string }
    | { action: 'end'; reason?: string };

  export type BeforeResponseDecision =
    | void
    | { action: 'continue' }
    | { action: 'cancel'; reason?: string }
    | { action: 'replace'; reply: string; modality?: 'text' | 'voice'; structured?: unknown; reason?: string };

  export interface BeforeLLMInput {
    requestId: string;
    turnId: string;
    trigger: 'inbound' | 'scheduled' | 'queue_replay';
    text: string;
    inbound?: InboundMessage;
    activeFlow?: { flowId: string; pausedOn: string | null };
    hitlState: string;
    schedule?: Record<string, any>;
  }

  export interface BeforeResponseInput {
    requestId: string;
    turnId: string;
    candidate: { text: string; modality: 'text' | 'voice'; structured?: any; index: number; origin: string };
    source: 'classic' | 'flow' | 'short_circuit' | 'scheduled';
    flowId?: string;
    hitlState: string;
    escalationId?: string;
    schedule?: Record<string, any>;
  }

  export interface ResponseMeta {
    source: 'classic' | 'flow' | 'short_circuit' | 'scheduled';
    flowId?: string;
    policy?: { beforeLLMAction?: string; beforeResponseAction?: string };
    hitlState?: string;
    escalationId?: string;
    [field: string]: any;
  }

  // --- the agent

  export type ModelConfig =
    | { provider: 'scripted'; script: string | ModelScript }
    | { provider: string; model?: string; baseUrl?: string; apiKeyEnv?: string; temperature?: number; maxTokens?: number };

  /** A call takes the first answer that matches and is not used up. */
  export interface ModelScript {
    answers: ScriptedAnswer[];
    otherwise?: ScriptedAnswer;
  }

  export interface ScriptedAnswer {
    /** `contains`: one of these is in the user's text. `afterTool`: the call hands back the result of this tool. */
    when?: { purpose?: 'chat' | 'router' | 'extract'; contains?: string | string[]; afterTool?: string };
    /** After a tool, `{{ result }}` and `{{ result.field }}` are replaced by what it answered. */
    text?: string;
    structured?: unknown;
    toolCalls?: Array<{ name: string; args?: Record<string, unknown> }>;
    fail?: string;
    /** 1 unless given; 0 means without limit. */
    times?: number;
    delayMs?: number;
  }

  export type FlowRouter =
    | { mode: 'detector'; prompt: string; outputSchema?: Schema; minConfidence?: number; fallback?: 'classic' | string }
    | { mode: 'schema_flow'; field: string; fallback?: 'classic' | string };

  export interface OpeningHours {
    timezone?: string;
    week?: Record<string, Array<[string, string]>>;
    holidays?: string[];
  }

  export interface HitlConfig {
    confirmDefaults?: {
      timeoutSeconds?: number;
      positiveKeywords?: string[];
      negativeKeywords?: string[];
      unrecognized?: 'reprompt' | 'decline';
      maxReprompts?: number;
      timeoutBehavior?: 'decline' | 'end_flow' | 'throw';
    };
    escalationDefaults?: {
      timeoutSeconds?: number;
      fallbackMode?: 'classic' | 'end_flow' | 'retry';
      autoAckText?: string;
      claimStopsTimeout?: boolean;
      outsideHoursText?: string;
      countOpenHoursOnly?: boolean;
    };
    /** What a message does while the flow waits for a person. */
    asyncPendingPolicy?: { behavior?: 'noop' | 'ack' | 'queue'; ackText?: string; ackMinIntervalSeconds?: number; maxQueued?: number };
    targets?: Record<string, { transport: string; address: string; label?: string; allowedActors?: string[]; fallbackTarget?: string; hours?: OpeningHours }>;
    takeover?: {
      adapter?: 'api' | string;
      allowedCommands?: string[];
      maxSeconds?: number;
      repromptOnHandback?: boolean;
      onExternalReply?: boolean;
      idleHandbackSeconds?: number;
    };
    humanKeyword?: string | string[];
    humanMode?: 'async_resolution' | 'live_takeover';
    offerHuman?: boolean;
    userCancelKeywords?: string[];
    /** What an escalation tells whoever decides. */
    escalationContext?: { messages?: number; profile?: boolean; answers?: boolean };
  }

  /** Who may act for the desk: API keys, data, or code. Without it every such action is denied. */
  export type AdminAuth =
    | { builtin: 'keys'; roles?: Record<string, string[]> }
    | {
        tokens?: Array<{ hash: string; actorId: string; role?: string }>;
        chat?: Array<{ transport: string; address: string; actorId: string; role?: string }>;
        roles?: Record<string, string[]>;
      }
    | {
        resolveActor(signals: { inbound?: InboundMessage; request?: { headers: Record<string, string> } }): Actor | null | Promise<Actor | null>;
        can(action: string, actor: Actor, session: Record<string, any>): boolean | Promise<boolean>;
      };

  export interface ScheduleDefinition {
    flowId: string;
    trigger: { type: 'cron'; expr: string } | { type: 'once'; runAt: string };
    target: Record<string, unknown>;
    [field: string]: unknown;
  }

  export interface AgentConfig {
    /** A template with `user`, `session`, `state` and what `context` returns, or a function. */
    prompt: string | ((ctx: AgentContext) => string | Promise<string>);
    context?: (ctx: AgentContext) => Record<string, unknown> | Promise<Record<string, unknown>>;
    model?: ModelConfig;
    /** Reads answers to confirmations with a schema. */
    extractionModel?: ModelConfig;
    outputSchema?: Schema;
    language?: 'auto' | 'de' | 'en' | 'es' | 'fr' | 'hi' | 'id' | 'it' | 'ja' | 'ko' | 'nl' | 'pl' | 'pt' | 'ru' | 'uk' | 'vi' | 'zh' | string;
    modality?: 'text' | 'voice' | 'auto';
    tools?: ToolDefinition[];
    /** By name; `false` removes a built-in one. */
    commands?: Record<string, CommandDefinition | false>;
    beforeLLM?: (input: BeforeLLMInput, ctx: AgentContext) => BeforeLLMDecision | Promise<BeforeLLMDecision>;
    beforeResponse?: (input: BeforeResponseInput, ctx: AgentContext) => BeforeResponseDecision | Promise<BeforeResponseDecision>;
    onResponse?: (structured: any, ctx: AgentContext, meta?: ResponseMeta) => unknown;
    hooks?: { onError?: 'continue' | 'cancel' | { beforeLLM?: 'continue' | 'cancel'; beforeResponse?: 'continue' | 'cancel' } };
    /** Besides those in `flows/`. */
    flows?: Record<string, FlowDefinition | FlowRegistration>;
    /** Users may start flows with `/flow ID`. */
    flowCommand?: boolean;
    flowRouter?: FlowRouter;
    hitl?: HitlConfig;
    adminAuth?: AdminAuth;
    schedules?: Record<string, ScheduleDefinition>;
    scheduler?: { timezone?: string; [field: string]: unknown };
    /** The only user who is served. */
    singleUser?: string;
    welcomeMessage?: string;
    fallbackReply?: string;
    rateLimitMessage?: string;
    overloadMessage?: string;
    maxToolIterations?: number;
    maxWorkingMemory?: number;
    maxEpisodicMemory?: number;
    sessionIdleTimeoutMinutes?: number;
    rateLimitPerUserPerMinute?: number;
    maxInboundConcurrency?: number;
    llmTimeoutMs?: number;
    toolTimeoutMs?: number;
    sttTimeoutMs?: number;
    ttsTimeoutMs?: number;
    hookTimeoutMs?: number;
    maxIdempotentRetries?: number;
    retryBaseDelayMs?: number;
    retryJitterMs?: number;
    maxRecursionSteps?: number;
    flowLimits?: { maxEffectsPerTurn?: number; maxHandoffsPerTurn?: number; maxJournalRecords?: number };
    ttsVoice?: string;
    /** `streaming`: readers see an answer while the model writes it. */
    finalizationStrategy?: 'buffered' | 'streaming';
    transports?: {
      /** Opens the agent to visitors without a key, at `/chat/{agentId}`. */
      web?: { title?: string; origins?: string[]; tenant?: string; workspace?: string; maxConnections?: number; stateKeys?: string[] };
      [transport: string]: Record<string, unknown> | undefined;
    };
    /** Origins that `ctx.http.fetch` may call, for example `https://api.example.com`. */
    http?: { allow: string[] };
    /** Messages within this time become one turn. */
    inbound?: { debounceMs?: number; maxWaitMs?: number };
    agentMode?: 'auto' | 'draft_only' | 'off';
    onNewMessage?: 'queue' | 'interrupt';
    /** What happens to a run whose code no longer does what its journal says. */
    onDivergence?: 'park' | 'fail' | 'restart';
    /** How texts are shown in events. */
    redaction?: 'full' | 'hashed' | 'omitted';
    consent?: { stopKeywords: string[]; startKeywords?: string[] };
    hours?: OpeningHours;
    /** Workflows that flows and the model may start. */
    workflows?: string[];
    /** The model may change the user's name and preferences. */
    profileTool?: boolean;
    /** Tokens of models that a session may use. */
    maxSessionTokens?: number;
  }

  export function createAgent(config: AgentConfig): AgentConfig;
  export function defineFlow<Input = any>(flow: FlowDefinition<Input> | FlowRegistration<Input>): FlowRegistration<Input> | FlowDefinition<Input>;
  export function defineTool<Args = any, Result = any>(tool: ToolDefinition<Args, Result>): ToolDefinition<Args, Result>;
  export function defineCommand<Args = any>(command: CommandDefinition<Args>): CommandDefinition<Args>;
  /** Adds `reply`, `modality` and `sessionEnded` to a map of fields or to a schema of an object. */
  export function withReply(shape?: Record<string, Schema> | Schema): Schema;
}

declare module 'zupa' {
  export * from 'tandem';
}
