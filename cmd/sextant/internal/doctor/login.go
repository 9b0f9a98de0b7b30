package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

const percent = "in a connection string, characters such as @ : / % are percent-encoded"

// login authenticates as the connection string says and asks for something that strangers are not told.
func (x *examination) login(ctx context.Context, client *sextant.Client, anybody *readpref.ReadPref) bool {
	ask := bson.D{{Key: "listDatabases", Value: 1}, {Key: "nameOnly", Value: true}}
	first := func(all []event.Member) []event.Member { // the same at each examination
		return []event.Member{slices.MinFunc(all, func(a, b event.Member) int { return strings.Compare(a.Address, b.Address) })}
	}
	_, err := client.Database("admin").RunCommand(ctx, ask, sextant.RunCommandOptions{ReadPreference: anybody, Selector: first})
	e := asError(err)
	f := Finding{Stage: "auth", Severity: Trouble}
	switch {
	case err == nil:
		return true
	case e != nil && e.Code == mongoerr.CodeUnauthorized && x.cfg.Username == "" && x.cfg.AuthMechanism == "":
		f.Server, f.Cause = e.Server, "the server wants a login, and the connection string has no user"
		f.Cure = "put user:password@ before the hosts, and authSource if the user is not of the database admin"
	case e != nil && e.Stage == mongoerr.StageServer && !mongoerr.IsAuth(err) && !mongoerr.IsStateChange(err):
		return true // logged in; what is asked for is not for this user, or not for this kind of server
	case mongoerr.IsAuth(err):
		f.Server = e.Server
		f.Cause, f.Cure = x.refusal(e)
	case mongoerr.IsTimeout(err) && fetched[x.cfg.AuthMechanism] != "":
		f.Cause = fmt.Sprintf("%s did not come in time: %s", fetched[x.cfg.AuthMechanism], x.askedOf())
		f.Cure = x.credentialsCure()
	default:
		f.Cause = "a member answers its monitor, but not a command: " + headline(err)
		f.Cure = "see whether the server hangs or turns connections away (its log; net.maxIncomingConnections)"
	}
	x.add(f)
	return false
}

// fetched is what must be fetched for a mechanism.
var fetched = map[string]string{"MONGODB-AWS": "the AWS keys", "MONGODB-OIDC": "the OIDC token"}

// refusal is why a login failed: at the server, or before anything was sent to it.
func (x *examination) refusal(e *mongoerr.Error) (cause, cure string) {
	if errors.Is(e, mongoerr.ErrNoCredentials) {
		why := strings.TrimPrefix(headline(e.Cause), mongoerr.ErrNoCredentials.Error()+": ")
		return fmt.Sprintf("%s could not be had: %s", fetched[x.cfg.AuthMechanism], why), x.credentialsCure()
	}
	cause = e.Message
	cause += suffix(e.Cause)
	cause = "the server refuses the login of " + strings.ReplaceAll(cause, "failed.;", "failed;")
	return cause, x.loginCure(e)
}

func (x *examination) loginCure(e *mongoerr.Error) string {
	switch mechanism := x.cfg.AuthMechanism; {
	case strings.Contains(e.Message, "does not offer the mechanism"):
		return "leave authMechanism out for a user with a password; otherwise have the server offer it (its parameter authenticationMechanisms), or take one that it does offer"
	case e.Code == mongoerr.CodeCommandNotFound:
		return "leave user and password out of the connection string"
	case mechanism == "MONGODB-X509":
		return x.x509Cure()
	case mechanism == "PLAIN":
		return "check name and password at the directory (" + percent + "), and the server's way to it (security.ldap)"
	case mechanism == "MONGODB-AWS":
		return "check that the keys are still good (aws sts get-caller-identity), and create a user in the database $external whose name is the ARN of the user or role"
	case mechanism == "MONGODB-OIDC":
		return "compare issuer and audience of the token with the server's oidcIdentityProviders, and see that its user or role is there"
	case strings.Contains(e.Message, "password must be wrong"):
		return "correct the password (" + percent + ")"
	case strings.Contains(e.Message, "no such user"):
		return "correct the user name, or say with authSource which database holds the user (often authSource=admin); if the user is there, correct the password (" + percent + ")"
	}
	return "check name and password (" + percent + "), the database that holds the user (authSource), and that the user may use this mechanism (authMechanism)"
}

func (x *examination) x509Cure() string {
	if !x.cfg.TLS && x.cfg.TLSConfig == nil {
		return "add tls=true, and the client's certificate with tlsCertificateKeyFile"
	}
	own := certificatesOf(x.cfg.TLSCertificateKeyFile)
	if len(own) == 0 {
		return "give the client's certificate with tlsCertificateKeyFile"
	}
	return "create a user of the name \"" + own[0].Subject.String() + "\", the certificate's subject, in the database $external; a user name in the connection string must be the same"
}

// askedOf says where the client looks for keys or tokens: by the names of variables, never their values.
func (x *examination) askedOf() string {
	if x.cfg.AuthMechanism == "MONGODB-AWS" {
		return "the connection string and the environment variable AWS_ACCESS_KEY_ID have none, and " + awsService() + " does not answer"
	}
	return "the environment " + x.cfg.AuthMechanismProperties["ENVIRONMENT"] + " does not answer"
}

// awsService is the one that the environment leads to, as the driver chooses it.
func awsService() string {
	switch {
	case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" && os.Getenv("AWS_ROLE_ARN") != "":
		return "the AWS token service (because AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are set)"
	case os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "", os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		return "the container's agent (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI)"
	}
	return "the metadata service of an EC2 machine"
}

func (x *examination) credentialsCure() string {
	if x.cfg.AuthMechanism == "MONGODB-AWS" {
		return "give keys as user and password of the connection string (with tls=true), or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; or run on a machine, container or pod that has a role"
	}
	switch env := x.cfg.AuthMechanismProperties["ENVIRONMENT"]; env {
	case "azure", "gcp":
		return "run on a machine of " + env + " with an identity, and give its audience as TOKEN_RESOURCE in authMechanismProperties; from elsewhere, use another ENVIRONMENT"
	case "k8s":
		return "run in a pod whose service account token is mounted (AZURE_FEDERATED_TOKEN_FILE, AWS_WEB_IDENTITY_TOKEN_FILE, or the default path); from elsewhere, use another ENVIRONMENT"
	}
	return "put the path of a file with the token into OIDC_TOKEN_FILE"
}

// unusable is the finding about a connection string that no client can be made of.
func (x *examination) unusable(err error, options []string) {
	cause := headline(err)
	if e, ok := errors.AsType[*mongoerr.Error](err); ok {
		cause = e.Message
		if e.Cause != nil && !strings.Contains(e.Cause.Error(), e.Message) {
			cause += suffix(e.Cause)
		}
	}
	cause = strings.TrimPrefix(cause, "connection string: ")
	f := Finding{Stage: "uri", Severity: Trouble, Cause: cause,
		Cure: `write it as "mongodb://host1:27017,host2:27017/?replicaSet=name"; in names and passwords, characters such as @ : / % are percent-encoded`}
	mechanism, _ := option(options, "authMechanism")
	switch {
	case mechanism != "" && (strings.Contains(cause, mechanism) || strings.Contains(cause, "authMechanism") || strings.Contains(cause, "authentication mechanism")):
		f.Stage = "auth"
		f.Cause, f.Cure = mechanismCure(mechanism, cause)
	case namesOption(cause, options):
		f.Cure = "correct this option, or leave it out"
		if strings.Contains(cause, "together") {
			f.Cure = "leave out one of the two"
		}
	}
	x.add(f)
}

func namesOption(cause string, options []string) bool {
	for _, o := range options {
		if k, _, _ := strings.Cut(o, "="); k != "" && strings.Contains(strings.ToLower(cause), strings.ToLower(k)) {
			return true
		}
	}
	return false
}

// mechanismCure is for an authMechanism that can not be used with what stands beside it.
func mechanismCure(mechanism, text string) (cause, cure string) {
	switch {
	case mechanism == "GSSAPI" && strings.Contains(text, "not spoken"):
		cause, _, _ = strings.Cut(text, "; ")
		return cause, "use what the server offers besides: PLAIN with tls=true where it asks an LDAP directory, MONGODB-X509, MONGODB-OIDC, or a user with a password (leave authMechanism out)"
	case mechanism == "MONGODB-CR":
		cause, _, _ = strings.Cut(text, ":")
		return cause, "leave authMechanism out: the user's SCRAM credentials are used"
	case strings.Contains(text, "takes no password"):
		proof := map[string]string{"MONGODB-X509": "the client's certificate (tls=true, tlsCertificateKeyFile)", "MONGODB-OIDC": "a token"}[mechanism]
		return text, "take the password out of the connection string: with " + mechanism + " the client proves itself by " + proof + "; a user with a password needs no authMechanism"
	case strings.Contains(text, "OIDCMachineCallback"):
		return "authMechanism=MONGODB-OIDC needs a place to get tokens from, and the connection string names none",
			"give authMechanismProperties=ENVIRONMENT:azure, gcp or k8s; what a program does with a callback can not be tried from the command line"
	case strings.Contains(text, "authSource"):
		return text, "leave authSource out, or write authSource=$external"
	}
	return text, "make user, password and authMechanismProperties those that " + mechanism + " takes, or leave authMechanism out for a user with a password"
}
