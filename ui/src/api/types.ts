/** The resources of `/v3` that the interface reads, with the fields it uses. */

export type Quantities = Record<string, string>;

export interface Condition {
  type: string;
  /** `True`, `False` or `Unknown`. */
  status: string;
  reason?: string;
  message?: string;
  lastUpdateTime?: string;
  lastTransitionTime?: string;
}

export interface Resource {
  id: string;
  type: string;
  created?: string | null;
  state?: string;
  /** `no`, `yes` while something is under way, `error` when it failed. */
  transitioning?: string;
  transitioningMessage?: string;
  /** An absent link or action is one that the caller may not use. */
  links?: Record<string, string>;
  actions?: Record<string, string>;
}

export interface Collection<T> {
  data: T[];
  pagination?: { total?: number; next?: string | null };
  /** What the caller may create has a link here. */
  links?: Record<string, string>;
  createTypes?: Record<string, string>;
}

export interface ComponentStatus {
  name: string;
  conditions?: { type: string; status: string; message?: string }[];
}

export interface Cluster extends Resource {
  name: string;
  description?: string;
  internal?: boolean;
  labels?: Record<string, string> | null;
  annotations?: Record<string, string> | null;
  driver?: string;
  provider?: string;
  version?: { gitVersion?: string; platform?: string } | null;
  nodeCount?: number | null;
  capacity?: Quantities | null;
  allocatable?: Quantities | null;
  requested?: Quantities | null;
  limits?: Quantities | null;
  conditions?: Condition[] | null;
  componentStatuses?: ComponentStatus[] | null;
  apiEndpoint?: string;
  agentImage?: string;
}

export interface Node extends Resource {
  name: string;
  nodeName?: string;
  clusterId?: string;
  ipAddress?: string;
  controlPlane?: boolean;
  etcd?: boolean;
  worker?: boolean;
  unschedulable?: boolean;
  allocatable?: Quantities | null;
  requested?: Quantities | null;
  conditions?: Condition[] | null;
  info?: {
    kubernetes?: { kubeletVersion?: string };
    os?: { operatingSystem?: string; kernelVersion?: string; dockerVersion?: string };
  } | null;
}

export interface RegistrationToken extends Resource {
  clusterId?: string;
  command?: string;
  insecureCommand?: string;
  manifestUrl?: string;
  expiresAt?: string;
  usedAt?: string;
}

/** Which entries manage a cluster already. Not a resource: it has no id. */
export interface ImportCheck {
  type: "importCheck";
  /** Those that the caller may see. */
  clusters: { id: string; name: string }[];
  /** The number of others. */
  hiddenClusters: number;
}

export interface User extends Resource {
  name?: string;
  username?: string;
  me?: boolean;
  mustChangePassword?: boolean;
}

/** Who has a role. */
export interface RoleBinding extends Resource {
  userId?: string | null;
}

/** A user as the provider of identities knows them. */
export interface Principal extends Resource {
  name?: string;
}

/** What a new password ended. */
export interface PasswordChange {
  /** Logins and tokens that ended. */
  endedTokens: number;
  /** Tokens that go on. */
  remainingTokens: number;
}

/** An event of the audit log. Not a resource: it has no links, and never changes. */
export interface AuditEvent {
  id: string;
  type: "auditEvent";
  /** When it ended. */
  created?: string | null;
  /** What happened, such as `login-refused`. */
  event: string;
  clusterId?: string | null;
  verb?: string;
  requestURI?: string;
  user?: { username?: string; extra?: Record<string, string[]> };
  sourceIPs?: string[];
  responseStatus?: { code?: number };
  annotations?: Record<string, string>;
}

export interface Setting extends Resource {
  value?: string;
}
