package bson

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonNode is one JSON value. kind is its first character: { [ " 0 (any number) t f n. text is a string's content or a
// number's digits; keys and kids are an object's members in order, kids alone an array's values.
type jsonNode struct {
	kind byte
	text string
	keys []string
	kids []jsonNode
}

// jsonParser reads JSON strictly by RFC 8259, and unlike encoding/json refuses invalid UTF-8 and half surrogates instead
// of replacing them, and keeps the order of keys and the text of numbers.
type jsonParser struct {
	text []byte
	at   int
}

// maxJSONDepth leaves room for the objects that wrap a value in the deepest document.
const maxJSONDepth = MaxDepth + 4

func (p *jsonParser) fail(format string, args ...any) error {
	return fmt.Errorf("bson: Extended JSON, byte %d: %s", p.at, fmt.Sprintf(format, args...))
}

// whole reads one value with nothing but blanks round it.
func (p *jsonParser) whole() (jsonNode, error) {
	n, err := p.value(1)
	if err != nil {
		return n, err
	}
	if p.blanks(); p.at < len(p.text) {
		return n, p.fail("unexpected %q after the value", p.text[p.at])
	}
	return n, nil
}

func (p *jsonParser) blanks() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next character that is not blank, 0 at the end.
func (p *jsonParser) peek() byte {
	if p.blanks(); p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *jsonParser) expect(c byte) error {
	if got := p.peek(); got != c {
		return p.unexpected(fmt.Sprintf("%q", c))
	}
	p.at++
	return nil
}

func (p *jsonParser) unexpected(want string) error {
	if p.at >= len(p.text) {
		return p.fail("the text ends where %s should be", want)
	}
	return p.fail("%q where %s should be", p.text[p.at], want)
}

func (p *jsonParser) value(depth int) (jsonNode, error) {
	if depth > maxJSONDepth {
		return jsonNode{}, p.fail("nested deeper than %d", maxJSONDepth)
	}
	switch c := p.peek(); c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		s, err := p.str()
		return jsonNode{kind: '"', text: s}, err
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return p.number()
		}
	}
	return jsonNode{}, p.unexpected("a value")
}

func (p *jsonParser) word(w string) (jsonNode, error) {
	if len(p.text)-p.at < len(w) || string(p.text[p.at:p.at+len(w)]) != w {
		return jsonNode{}, p.unexpected("a value")
	}
	p.at += len(w)
	return jsonNode{kind: w[0]}, nil
}

func (p *jsonParser) object(depth int) (jsonNode, error) {
	n := jsonNode{kind: '{'}
	p.at++
	if p.peek() == '}' {
		p.at++
		return n, nil
	}
	for {
		if p.peek() != '"' {
			return n, p.unexpected("a key")
		}
		key, err := p.str()
		if err != nil {
			return n, err
		}
		if err := p.expect(':'); err != nil {
			return n, err
		}
		kid, err := p.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.keys, n.kids = append(n.keys, key), append(n.kids, kid)
		if p.peek() == ',' {
			p.at++
			continue
		}
		return n, p.expect('}')
	}
}

func (p *jsonParser) array(depth int) (jsonNode, error) {
	n := jsonNode{kind: '['}
	p.at++
	if p.peek() == ']' {
		p.at++
		return n, nil
	}
	for {
		kid, err := p.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, kid)
		if p.peek() == ',' {
			p.at++
			continue
		}
		return n, p.expect(']')
	}
}

// number reads [-] int [frac] [exp].
func (p *jsonParser) number() (jsonNode, error) {
	start := p.at
	if p.text[p.at] == '-' {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at] == '0' {
		p.at++
	} else if !p.digits() {
		return jsonNode{}, p.unexpected("a digit")
	}
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		if !p.digits() {
			return jsonNode{}, p.unexpected("a digit")
		}
	}
	if p.at < len(p.text) && p.text[p.at]|0x20 == 'e' {
		p.at++
		if p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-') {
			p.at++
		}
		if !p.digits() {
			return jsonNode{}, p.unexpected("a digit")
		}
	}
	return jsonNode{kind: '0', text: string(p.text[start:p.at])}, nil
}

// digits skips digits and reports whether there was one.
func (p *jsonParser) digits() bool {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

// str reads a string; p stands at the opening quote.
func (p *jsonParser) str() (string, error) {
	p.at++
	var out []byte
	for p.at < len(p.text) {
		start := p.at
		for p.at < len(p.text) && p.text[p.at] != '"' && p.text[p.at] != '\\' && p.text[p.at] >= ' ' {
			p.at++
		}
		out = append(out, p.text[start:p.at]...)
		if p.at == len(p.text) {
			break
		}
		switch p.text[p.at] {
		case '"':
			if !utf8.Valid(out) {
				return "", p.fail("the string that ends here is not UTF-8")
			}
			p.at++
			return string(out), nil
		case '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			return "", p.fail("control character 0x%02x in a string", p.text[p.at])
		}
	}
	return "", p.fail("the text ends inside a string")
}

// escape reads an escape; p stands at the backslash.
func (p *jsonParser) escape() (rune, error) {
	if p.at+1 >= len(p.text) {
		return 0, p.fail("the text ends inside a string")
	}
	c := p.text[p.at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return p.unicode()
	default:
		return 0, p.fail("unknown escape \\%c", c)
	}
	p.at += 2
	return rune(c), nil
}

// unicode reads \uXXXX, or the two of a surrogate pair.
func (p *jsonParser) unicode() (rune, error) {
	r, ok := p.hex4()
	if !ok {
		return 0, p.fail("\\u needs four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	low, ok := p.hex4()
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, p.fail("half of a surrogate pair")
	}
	return r, nil
}

func (p *jsonParser) hex4() (rune, bool) {
	if len(p.text)-p.at < 6 || p.text[p.at] != '\\' || p.text[p.at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p.text[p.at+2:p.at+6]), 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += 6
	return rune(n), true
}
