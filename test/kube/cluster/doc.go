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
//	err := c.AddFakeNodes(ctx, 10, cluster.Size{CPU: "16", Memory: "64Gi"})   // fake-1…: see AddFakeNodes for what pods do there
//	n, err := c.AddNode(ctx, "real-1")                            // a kubelet and a containerd, with the image in it (root)
//	err := n.Import(ctx, archive)                                 // one more image: a docker archive, see Archive
//	n.Vanish()                                                    // the machine is gone: kubelet, containerd, pods, all at once
//
//	c.APIServer.Kill(); err = c.APIServer.Start(ctx)              // every component: Kill, Stop, Signal, Start; data and ports stay
//
// All of it lives in a folder /tmp/cs-kube-*, and dies with the test's process:
// what could not is ended by `.ci/kube end`. The binaries are built by
// `.ci/kube build`; CLOUDSHARE_KUBE_BIN names another folder of them. What is
// missing fails the test, never skips it.
package cluster
