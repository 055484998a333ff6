package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns the path of the administrator's.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// Config returns a copy of the administrator's, without a limit of its own on
// the rate of calls.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// Client returns the administrator's.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// writeAdmin writes the administrator's kubeconfig, and makes its client.
func (c *Cluster) writeAdmin() error {
	p, err := c.ca.issue("admin", []string{"system:masters"}, lasting)
	if err != nil {
		return err
	}
	if err = c.kubeconfig(c.Kubeconfig(), &api.AuthInfo{ClientCertificateData: p.cert, ClientKeyData: p.key},
		""); err != nil {
		return err
	}
	if c.admin, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	c.admin.QPS = -1
	c.client, err = kubernetes.NewForConfig(c.admin)
	return err
}

// kubeconfig writes one for a user, with the authority's certificate in it.
func (c *Cluster) kubeconfig(path string, user *api.AuthInfo, namespace string) error {
	k := api.NewConfig()
	k.Clusters["c"] = &api.Cluster{Server: "https://" + c.ports["api"], CertificateAuthorityData: c.ca.pem}
	k.AuthInfos["u"] = user
	k.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	k.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}

// Certificate writes a kubeconfig for a user who is known by a certificate, which
// expires after valid; negative: it has. The user has no rights but those that a
// test binds.
func (c *Cluster) Certificate(user string, valid time.Duration, groups ...string) (string, error) {
	p, err := c.ca.issue(user, groups, valid)
	if err != nil {
		return "", err
	}
	path := c.path(user + ".kubeconfig")
	return path, c.kubeconfig(path, &api.AuthInfo{ClientCertificateData: p.cert, ClientKeyData: p.key}, "")
}

// ServiceAccount makes a service account, with its namespace if need be, gives it
// these rights in that namespace, and writes a kubeconfig whose token is in the
// file of the same name with .token: a test may replace that. The token dies with
// the account, 10 s later.
func (c *Cluster) ServiceAccount(
	ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule,
) (string, error) {
	if err := c.Namespace(ctx, namespace); err != nil {
		return "", err
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	_, err := c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a service account: %w", err)
	}
	if _, err = c.client.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("make its role: %w", err)
	}
	_, err = c.client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("bind its role: %w", err)
	}
	return c.Account(ctx, namespace, name)
}

// ClusterRights gives a service account rights beyond its namespace, as nodes are.
func (c *Cluster) ClusterRights(ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Name: namespace + "-" + name}
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make a cluster role: %w", err)
	}
	_, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind a cluster role: %w", err)
	}
	return nil
}

// Account writes a kubeconfig for a service account that is there, as one that a
// chart has made.
func (c *Cluster) Account(ctx context.Context, namespace, name string) (string, error) {
	t, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("have a token signed: %w", err)
	}
	path := c.path(namespace + "-" + name)
	if err = os.WriteFile(path+".token", []byte(t.Status.Token), 0o600); err != nil {
		return "", err
	}
	return path + ".kubeconfig", c.kubeconfig(path+".kubeconfig", &api.AuthInfo{TokenFile: path + ".token"}, namespace)
}

// Namespace makes a namespace unless it is there.
func (c *Cluster) Namespace(ctx context.Context, name string) error {
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace %s: %w", name, err)
	}
	return nil
}

// closeIdle closes the connections that a configuration's clients keep.
func closeIdle(c *rest.Config) {
	t, err := rest.TransportFor(c)
	if err != nil {
		return
	}
	type wrapper interface{ WrappedRoundTripper() http.RoundTripper }
	for {
		w, ok := t.(wrapper)
		if !ok {
			break
		}
		t = w.WrappedRoundTripper()
	}
	if i, ok := t.(interface{ CloseIdleConnections() }); ok {
		i.CloseIdleConnections()
	}
}
