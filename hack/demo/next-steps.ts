import type { GatewayAddress } from "../kit/install.ts";

/** What a newcomer may try on the running cluster. */
export function nextSteps(kubeconfig: string, gateway: GatewayAddress): string {
  const at = `${gateway.address}:${gateway.port}`;
  return `
The cluster is still running. Try:

  export KUBECONFIG=${kubeconfig}
  kubectl get ksvc,revisions,pods
  curl -H 'Host: hello.default.example.com' http://${at}/

  # load, by any tool that sets a Host header
  hey -z 20s -c 50 -host hello.default.example.com 'http://${at}/?sleep=200'
  wrk -t2 -c50 -d20s -H 'Host: hello.default.example.com' 'http://${at}/?sleep=200'

  npm run fairway -- why hello          # why this many pods
  kubectl edit ksvc hello               # a new revision, without a failed request
  kubectl apply -f manifests/examples/  # more examples

  npm run demo -- --down                # end it
`;
}
