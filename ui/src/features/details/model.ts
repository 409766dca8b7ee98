/** What the pages of Services, Ingresses and volumes say of their objects. Pure. */

/** Rows of facts: a name and its value; absent ones are left out. */
export type Facts = [name: string, value: string | undefined][];

export interface ServiceContent {
  spec?: {
    type?: string;
    clusterIP?: string;
    clusterIPs?: string[];
    externalIPs?: string[];
    externalName?: string;
    sessionAffinity?: string;
    selector?: Record<string, string>;
    ports?: {
      name?: string;
      protocol?: string;
      port: number;
      targetPort?: number | string;
      nodePort?: number;
    }[];
  };
  status?: { loadBalancer?: Balancer };
}

interface Balancer {
  ingress?: { ip?: string; hostname?: string }[];
}

export interface IngressContent {
  spec?: {
    ingressClassName?: string;
    defaultBackend?: IngressBackend;
    tls?: { hosts?: string[]; secretName?: string }[];
    rules?: {
      host?: string;
      http?: { paths?: { path?: string; pathType?: string; backend?: IngressBackend }[] };
    }[];
  };
  status?: { loadBalancer?: Balancer };
}

interface IngressBackend {
  service?: { name: string; port?: { number?: number; name?: string } };
  resource?: { kind: string; name: string };
}

export interface ClaimContent {
  spec?: {
    accessModes?: string[];
    storageClassName?: string;
    volumeMode?: string;
    volumeName?: string;
    resources?: { requests?: { storage?: string } };
  };
  status?: { phase?: string; capacity?: { storage?: string } };
}

export interface VolumeContent {
  spec?: {
    accessModes?: string[];
    capacity?: { storage?: string };
    claimRef?: { namespace?: string; name: string };
    persistentVolumeReclaimPolicy?: string;
    storageClassName?: string;
  };
  status?: { phase?: string };
}

function balancerText(status: { loadBalancer?: Balancer } | undefined): string {
  const places = status?.loadBalancer?.ingress ?? [];
  return places.map(({ ip, hostname }) => ip ?? hostname ?? "").join(", ");
}

export function serviceFacts({ spec, status }: ServiceContent): Facts {
  const selector = Object.entries(spec?.selector ?? {}).map(([key, value]) => `${key}=${value}`);
  return [
    ["Type", spec?.type],
    ["Cluster address", (spec?.clusterIPs ?? [spec?.clusterIP ?? ""]).join(", ")],
    ["External name", spec?.externalName],
    ["External addresses", [...(spec?.externalIPs ?? []), balancerText(status)].join(", ")],
    ["Selects pods with", selector.join(", ") || "nothing: its endpoints are made by hand"],
    ["Sessions stay with a pod", spec?.sessionAffinity === "ClientIP" ? "by client" : undefined],
  ];
}

/** The ports of a Service, as rows: name, port, target, node port. */
export function servicePorts({ spec }: ServiceContent): string[][] {
  return (spec?.ports ?? []).map(({ name, protocol = "TCP", port, targetPort, nodePort }) => [
    name ?? "—",
    `${port}/${protocol}`,
    String(targetPort ?? port),
    nodePort ? String(nodePort) : "—",
  ]);
}

export function ingressFacts({ spec, status }: IngressContent): Facts {
  const tls = (spec?.tls ?? []).map(
    ({ hosts = [], secretName }) =>
      `${hosts.join(", ") || "all hosts"} (${secretName ?? "no secret"})`,
  );
  return [
    ["Class", spec?.ingressClassName ?? "the default of the cluster"],
    ["Address", balancerText(status) || "none so far"],
    ["TLS", tls.join("; ") || "none"],
    ["Everything else goes to", spec?.defaultBackend && backendText(spec.defaultBackend)],
  ];
}

/** A way through an Ingress. */
export interface IngressRoute {
  host: string;
  path: string;
  backend: string;
  /** The name of the Service, if it leads to one. */
  service: string | undefined;
}

export function ingressRoutes({ spec }: IngressContent): IngressRoute[] {
  return (spec?.rules ?? []).flatMap(({ host, http }) =>
    (http?.paths ?? []).map(({ path, pathType, backend }) => ({
      host: host || "any host",
      path: `${path || "/"}${pathType === "Exact" ? " exactly" : ""}`,
      backend: backend ? backendText(backend) : "—",
      service: backend?.service?.name,
    })),
  );
}

function backendText({ service, resource }: IngressBackend): string {
  if (service) return `${service.name}:${service.port?.number ?? service.port?.name ?? "?"}`;
  return resource ? `${resource.kind} ${resource.name}` : "—";
}

export function claimFacts({ spec, status }: ClaimContent): Facts {
  return [
    ["Phase", status?.phase],
    ["Requested", spec?.resources?.requests?.storage],
    ["Has", status?.capacity?.storage ?? "nothing so far"],
    ["Storage class", spec?.storageClassName ?? "the default of the cluster"],
    ["Access", spec?.accessModes?.join(", ")],
    ["Mode", spec?.volumeMode],
  ];
}

export function volumeFacts({ spec, status }: VolumeContent): Facts {
  return [
    ["Phase", status?.phase],
    ["Size", spec?.capacity?.storage],
    ["Storage class", spec?.storageClassName || "none"],
    ["Access", spec?.accessModes?.join(", ")],
    ["When its claim is deleted", spec?.persistentVolumeReclaimPolicy],
  ];
}

/** A value of a Secret, which is base64: its text, or how long it is. */
export function decoded(base64: string): { text?: string; bytes: number } {
  try {
    const raw = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const bytes = raw.length;
    try {
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(raw), bytes };
    } catch {
      return { bytes };
    }
  } catch {
    return { text: base64, bytes: base64.length };
  }
}
