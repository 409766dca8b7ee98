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
  /** `no`, `yes` while a change is in progress, `error` if it failed. */
  transitioning?: string;
  transitioningMessage?: string;
  /** An absent link or action is one that the caller may not use. */
  links?: Record<string, string>;
  actions?: Record<string, string>;
}

export interface Collection<T> {
  data: T[];
  pagination?: { total?: number; next?: string | null };
  /** Types that the caller may create have a link here. */
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
  /** Entries that the caller may see. */
  clusters: { id: string; name: string }[];
  /** Number of entries that the caller may not see. */
  hiddenClusters: number;
}

export interface User extends Resource {
  name?: string;
  username?: string;
  me?: boolean;
  mustChangePassword?: boolean;
}

/** A role of a user or group. */
export interface RoleBinding extends Resource {
  userId?: string | null;
}

/** A user of the identity provider. */
export interface Principal extends Resource {
  name?: string;
}

/** Result of a change of password. */
export interface PasswordChange {
  /** Logins and tokens that ended. */
  endedTokens: number;
  /** Tokens that stay valid. */
  remainingTokens: number;
}

/** An event of the audit log. Not a resource: it has no links, and never changes. */
export interface AuditEvent {
  id: string;
  type: "auditEvent";
  /** End of the request. */
  created?: string | null;
  /** Kind of the event, such as `login-refused`. */
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

/** A request to a cluster, whose decision is explained. */
export interface AccessQuestion {
  cluster: string;
  /** Absent or empty: the caller. */
  user?: string;
  verb: string;
  group: string;
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
  path: string;
}

/** Whom a binding names. */
export interface Named {
  kind: string;
  namespace?: string;
  name: string;
}

export interface RbacRule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** A binding in the cluster that allows a request. */
export interface AccessGrant {
  binding: Named;
  subject: Named;
  role: Named;
  rule: RbacRule;
}

export interface AccessWay extends AccessGrant {
  /** Bindings in Drover that put the user into the group of the grant. */
  from?: (Named & { throughGroup?: string; roles: string[] })[];
}

export interface AccessExplanation {
  allowed: boolean;
  because: AccessWay[];
  missing?: RbacRule;
  nextStep?: string;
  /** Ids of the owners of the cluster. */
  granters?: string[];
}

export interface Allowed {
  users: { user: string; username?: string; displayName?: string; because: AccessGrant }[];
  others: Named[];
  leftOut: number;
}

/** An identity provider that is enabled, or the server itself. */
export interface LoginProvider extends Resource {
  /** Where a browser logs in on the provider's own pages. */
  redirectUrl?: string;
}
