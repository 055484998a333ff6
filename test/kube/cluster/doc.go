// Package cluster runs a real Kubernetes on this machine's loopback for tests:
// etcd, kube-apiserver (TLS, client certificates, RBAC), kube-controller-manager
// and kube-scheduler, nodes that kwok plays, and nodes of a real kubelet with
// Debian's containerd. It stands for what a site's broker finds at steps 4 and 6
// of a job's way, and imports nothing of the product.
//
//	c := cluster.Start(t)                         // up in about 3 s; gone with the test
//	c, err := cluster.New(ctx)                    // the same for TestMain: one for a package; end it by c.Close()
//	c.Client()                                    // the administrator's clientset; c.Config() its rest.Config
//	c.Kubeconfig()                                // the path of the administrator's kubeconfig
//
//	path, err := c.ServiceAccount(ctx, "ns", "broker", rules...)  // kubeconfig of an account with these rights, and no others
//	path, err := c.Certificate("somebody", time.Second)           // kubeconfig of a user whose certificate expires then
//
//	names, err := c.AddFakeNodes(ctx, 10, cluster.Size{CPU: "16", Memory: "64Gi"})  // see there for what pods do on them
//	n, err := c.AddNode(ctx, "real-1")                            // a kubelet and a containerd, with the image in it (root)
//	err := n.Import(ctx, "cloudshare-image.tar")                  // one more image, of a file as `docker save` writes it
//	err := n.ImportProgram(ctx, "cloudshare.test/x:1", program)   // one more, FROM scratch of one static program, /app
//	n.Vanish()                                                    // the machine is gone: kubelet, containerd, pods, all at once
//	n.Runs()                                                      // what really runs in its pods, whatever Kubernetes says
//
//	err := c.RemoveNodes(ctx, names...)                           // real or fake: for tests that share a cluster
//
//	c.APIServer.Kill(); err = c.APIServer.Start(ctx)              // every component: Kill, Stop, Signal, Start; data and ports stay
//
// A node that vanished is not ready after about 6 s. 3 s after that its pods are deleted,
// unless all nodes are silent; they stay, with the time of their deletion, until its
// object is deleted, too: nobody could say that they have ended.
//
// A pod on a real node reaches the API server at the service's address with its own
// account's token. There is no kube-proxy and no DNS: other services have an
// address that nothing listens at.
//
// All of it lives in a folder /tmp/cs-kube-*, and dies with the test's process:
// what could not is ended by `.ci/kube end`. The binaries are built by
// `.ci/kube build`; CLOUDSHARE_KUBE_BIN names another folder of them. What is
// missing fails the test, never skips it.
package cluster
