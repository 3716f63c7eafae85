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

  export interface ConfirmOptions {
    question: string;
    id?: string;
    timeoutSeconds?: number;
    positiveKeywords?: string[];
    negativeKeywords?: string[];
    responseSchema?: Schema;
    timeoutBehavior?: 'decline' | 'end_flow' | 'throw';
    reminders?: Array<{ afterSeconds: number; text: string }>;
  }

  export interface EscalateOptions {
    mode: 'async_resolution' | 'live_takeover';
    reason: string;
    id?: string;
    priority?: 'low' | 'normal' | 'high' | 'critical';
    metadata?: Record<string, unknown>;
    timeoutSeconds?: number;
  }

  export interface WaitOptions {
    waitFor: 'admin_resolution' | 'live_handback' | 'confirm_response' | 'timeout';
    timeoutSeconds?: number;
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
    | { type: 'ask'; key: string; text: string; reminders?: Array<{ afterSeconds: number; text: string }> }
    | { type: 'tool'; name: string; args: Record<string, unknown>; onError?: 'throw' | 'return' }
    | { type: 'handoff'; to: string; input?: unknown }
    | { type: 'end'; reason?: string }
    | ({ type: 'interrupt.confirm' } & ConfirmOptions)
    | ({ type: 'interrupt.escalate' } & EscalateOptions)
    | ({ type: 'interrupt.wait' } & WaitOptions)
    | ({ type: 'interrupt.proxy.start' } & ProxyStartOptions)
    | ({ type: 'interrupt.proxy.wait' } & ProxyWaitOptions)
    | { type: 'interrupt.proxy.stop'; reason?: string }
    | { type: 'workflow.run'; workflowId: string; input?: unknown; wait?: boolean; timeoutSeconds?: number };

  /** What a helper returns: `yield` it, or `yield*` it for a typed result. Never `await` it. */
  export type Yieldable<Result> = FlowEffect & { [Symbol.asyncIterator](): AsyncGenerator<FlowEffect, Result, any> };

  export interface FlowHelpers {
    say(text: string | { text: string }): Yieldable<void>;
    ask(key: string | { key: string; text: string }, text?: string): Yieldable<string>;
    tool(name: string | { name: string; args: Record<string, unknown> }, args?: Record<string, unknown>, options?: { onError?: 'throw' | 'return' }): Yieldable<any>;
    handoff(to: string | { to: string; input?: unknown }, input?: unknown): Yieldable<never>;
    startFlow(flowId: string, input?: unknown): Yieldable<never>;
    end(reason?: string | { reason?: string }): Yieldable<never>;
    confirm(options: ConfirmOptions): Yieldable<any>;
    escalate(options: EscalateOptions): Yieldable<{ escalationId: string; mode: string; status: string; createdAt: string }>;
    wait(options: WaitOptions): Yieldable<any>;
    proxyToAdmin(options: ProxyStartOptions | { stop: true; reason?: string }): Yieldable<any>;
    waitForAdminInput(options?: ProxyWaitOptions): Yieldable<any>;
    runWorkflow(workflowId: string | { workflowId: string; input?: unknown }, input?: unknown, options?: { wait?: boolean; timeoutSeconds?: number }): Yieldable<{ runId: string; status: string; output?: any; error?: any }>;
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
    idempotent?: boolean;
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
    handler: (ctx: AgentContext, args: Args) => unknown;
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

  export interface AgentConfig {
    prompt: string | ((ctx: AgentContext) => string | Promise<string>);
    context?: (ctx: AgentContext) => Record<string, unknown> | Promise<Record<string, unknown>>;
    model?: Record<string, unknown>;
    outputSchema?: Schema;
    /** Origins that `ctx.http.fetch` may call, for example `https://api.example.com`. */
    http?: { allow: string[] };
    language?: string;
    modality?: 'text' | 'voice' | 'auto';
    tools?: ToolDefinition[];
    commands?: Record<string, CommandDefinition | false>;
    flows?: Record<string, FlowDefinition | FlowRegistration>;
    flowRouter?: Record<string, unknown>;
    hitl?: Record<string, unknown>;
    adminAuth?: Record<string, unknown> | {
      resolveActor(signals: { inbound?: InboundMessage; request?: { headers: Record<string, string> } }): Actor | null | Promise<Actor | null>;
      can(action: string, actor: Actor, session: Record<string, any>): boolean | Promise<boolean>;
    };
    beforeLLM?: (input: { text: string; [field: string]: any }, ctx: AgentContext) => BeforeLLMDecision | Promise<BeforeLLMDecision>;
    beforeResponse?: (input: { candidate: { text: string; [field: string]: any }; [field: string]: any }, ctx: AgentContext) => BeforeResponseDecision | Promise<BeforeResponseDecision>;
    onResponse?: (structured: any, ctx: AgentContext, meta?: Record<string, any>) => unknown;
    transports?: {
      /** Opens the agent to visitors without a key, at `/chat/{agentId}`. */
      web?: { title?: string; origins?: string[]; tenant?: string; workspace?: string; maxConnections?: number; stateKeys?: string[] };
      [transport: string]: Record<string, unknown> | undefined;
    };
    schedules?: Record<string, Record<string, unknown>>;
    scheduler?: Record<string, unknown>;
    [field: string]: unknown;
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
