// Types of the built-in module `tandem`, second part: what authors define.

declare module 'tandem' {
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

  export interface CommandContext extends AgentContext {
    /** Who wrote the command. Only in handlers of commands with `access: 'admin'`; it is absent in others. */
    readonly actor: Actor;
  }

  export interface CommandDefinition<Args = any> {
    description?: string;
    access?: 'public' | 'admin';
    args?: Schema;
    handler?: (ctx: CommandContext, args: Args) => unknown;
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
    schedule?: ScheduleContext;
  }

  export interface BeforeResponseInput {
    requestId: string;
    turnId: string;
    candidate: { text: string; modality: 'text' | 'voice'; structured?: any; index: number; origin: string };
    source: 'classic' | 'flow' | 'short_circuit' | 'scheduled';
    flowId?: string;
    hitlState: string;
    escalationId?: string;
    schedule?: ScheduleContext;
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

  export interface WebhookTransport {
    kind: 'webhook';
    url: string;
    /** The environment variable with the secret that both sides sign with. */
    secretEnv: string;
    delivery?: 'at_least_once' | 'at_most_once';
    typing?: boolean;
    markRead?: boolean;
    timeoutMs?: number;
    tenant?: string;
    workspace?: string;
  }

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
    /** Such as `Europe/Berlin`; UTC unless given. */
    timezone?: string;
    /** Times of the wall clock, such as `[["09:00", "12:00"], ["13:00", "17:00"]]`. A day that is left out is closed. */
    week: Partial<Record<'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun', Array<[string, string]>>>;
    /** Closed all day, such as `2026-12-25`. */
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
      /** The desk of escalations that name none. */
      queue?: string;
      /** The time of an escalation stops while somebody who claimed it works on it. */
      claimStopsTimeout?: boolean;
      /** Instead of `autoAckText` while nobody is there. */
      outsideHoursText?: string;
      /** `timeoutSeconds` counts open hours. */
      countOpenHoursOnly?: boolean;
    };
    /** What a message does while the flow waits for a person. */
    asyncPendingPolicy?: { behavior?: 'noop' | 'ack' | 'queue'; ackText?: string; ackMinIntervalSeconds?: number; maxQueued?: number };
    targets?: Record<string, { transport: string; address: string; label?: string; allowedActors?: string[]; fallbackTarget?: string; hours?: OpeningHours }>;
    /** A person speaks with the user in place of the agent. */
    takeover?: {
      /** Where the user's messages go: only to the API and the console, or also to a key of `targets`. */
      adapter?: 'api' | string;
      /** Public commands that are still served meanwhile. */
      allowedCommands?: string[];
      /** The longest time of a takeover that no flow asked for. */
      maxSeconds?: number;
      /** The open question of a flow is sent again at the handback. */
      repromptOnHandback?: boolean;
      /** A message from the agent's own account, written past this host, starts a takeover. */
      onExternalReply?: boolean;
      /** The agent gets the conversation back when the person gives no sign for so long. */
      idleHandbackSeconds?: number;
    };
    humanKeyword?: string | string[];
    /** `live_takeover` unless another is named. */
    humanMode?: 'async_resolution' | 'live_takeover';
    offerHuman?: boolean;
    userCancelKeywords?: string[];
    /** Addresses that are told of each escalation. */
    notify?: { transport: string; address: string }[];
    /** What an escalation tells whoever decides. */
    escalationContext?: { messages?: number; summary?: boolean; profile?: boolean; answers?: boolean };
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

  /** What happens to occurrences that nobody looked at in time. */
  export type OnMissed = { policy: 'skip' } | { policy: 'catch_up'; maxRuns?: number; maxAgeSeconds?: number };

  export type Segment =
    | { type: 'all' }
    | { type: 'active_since'; activeSinceDays: number }
    | { type: 'tag'; tag: string }
    /** A filter such as `tags has "vip" and preferences.city = "Bern"`. */
    | { type: 'custom_query'; query: string };

  export interface ScheduleDefinition {
    flowId: string;
    /** Five fields of cron, or one moment; without an offset it is read in `scheduler.timezone`. */
    trigger: { type: 'cron'; expr: string } | { type: 'once'; runAt: string };
    target:
      | { kind: 'user'; userExternalId: string; sessionId?: string }
      | { kind: 'segment'; campaignId?: string; segment: Segment };
    /** Users without an active session get one. */
    allowSessionBootstrap?: boolean;
    onMissed?: OnMissed;
    /** What a turn does where another flow merely asks. */
    onActiveFlow?: 'skip' | 'preempt';
    metadata?: Record<string, unknown>;
    /** `ctx.input` of the flow. */
    input?: unknown;
  }

  export interface SchedulerConfig {
    enabled?: boolean;
    /** The zone of triggers and of local times in code. */
    timezone?: string;
    executor?: 'in_process';
    /** An occurrence is missed when it is older than twice this, and than a minute. */
    pollIntervalMs?: number;
    claimTtlSeconds?: number;
    /** Turns of one run at once. */
    maxConcurrentRuns?: number;
    /** Turns of one campaign that begin within a minute. */
    perMinute?: number;
    defaultOnMissed?: OnMissed;
    /** Offer the four `…CurrentUserSchedule` tools to the model and to flows. */
    tools?: boolean;
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
    scheduler?: SchedulerConfig;
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
    /** Understands recordings of users and speaks answers. `scripted`: a recording is its text. */
    speech?:
      | { provider: 'scripted'; transcript?: string; fail?: string }
      | {
          provider: string;
          baseUrl?: string;
          apiKeyEnv?: string;
          transcriptionModel?: string;
          synthesisModel?: string;
          format?: 'mp3' | 'opus' | 'wav';
        };
    /** `streaming`: readers see an answer while the model writes it. */
    finalizationStrategy?: 'buffered' | 'streaming';
    transports?: {
      /** Opens the agent to visitors without a key, at `/chat/{agentId}`. */
      web?: { title?: string; origins?: string[]; tenant?: string; workspace?: string; maxConnections?: number; stateKeys?: string[] };
      /** A network of its own. `webhook`: signed requests in both directions. */
      [transport: string]: WebhookTransport | Record<string, unknown> | undefined;
    };
    /** Origins that `ctx.http.fetch` may call, for example `https://api.example.com`. */
    http?: { allow: string[] };
    /** Messages within this time become one turn. */
    inbound?: { debounceMs?: number; maxWaitMs?: number };
    agentMode?: 'auto' | 'draft_only' | 'off';
    onNewMessage?: 'queue' | 'interrupt';
    /** What happens to a run whose code no longer does what its journal says. */
    onDivergence?: 'park' | 'fail' | 'restart';
    /** After every turn its flows are run again from their journals; code that does something else is reported. */
    strict?: boolean;
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
