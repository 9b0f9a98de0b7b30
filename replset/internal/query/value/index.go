package value

import "strconv"

var smallIndexes = func() (s [256]string) {
	for i := range s {
		s[i] = strconv.Itoa(i)
	}
	return s
}()

// Index is the key of the i-th array element.
func Index(i int) string {
	if i >= 0 && i < len(smallIndexes) {
		return smallIndexes[i]
	}
	return strconv.Itoa(i)
}

// ParseIndex reads an array index as a path part may hold it: decimal digits without a leading zero.
func ParseIndex(s string) (int, bool) {
	if s == "" || len(s) > 9 || (len(s) > 1 && s[0] == '0') {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
