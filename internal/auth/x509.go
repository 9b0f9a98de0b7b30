package auth

import "github.com/sextantdb/sextant/bson"

// AppendX509 appends the command authenticate, by which the user of this connection's TLS certificate logs in. An empty
// username is not sent: the server takes the certificate's subject (authentication specification, "MONGODB-X509").
func AppendX509(dst []byte, username string) []byte {
	dst = bson.AppendInt32(dst, "authenticate", 1)
	dst = bson.AppendString(dst, "mechanism", X509)
	if username != "" {
		dst = bson.AppendString(dst, "user", username)
	}
	return dst
}
