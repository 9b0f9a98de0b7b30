package sextant

// Collation says how strings are compared; the zero value of a field is the server's default. Locale must be set.
// See https://www.mongodb.com/docs/manual/reference/collation/.
type Collation struct {
	Locale          string `bson:"locale"`                    // an ICU locale, or "simple" for comparison by bytes
	CaseLevel       bool   `bson:"caseLevel,omitempty"`       // compare case at strength 1 and 2
	CaseFirst       string `bson:"caseFirst,omitempty"`       // "upper", "lower" or "off"
	Strength        int    `bson:"strength,omitempty"`        // 1 base letters, 2 accents, 3 case (default), 4, 5
	NumericOrdering bool   `bson:"numericOrdering,omitempty"` // "10" after "2"
	Alternate       string `bson:"alternate,omitempty"`       // "non-ignorable" or "shifted"
	MaxVariable     string `bson:"maxVariable,omitempty"`     // "punct" or "space"
	Normalization   bool   `bson:"normalization,omitempty"`   // normalise the text first
	Backwards       bool   `bson:"backwards,omitempty"`       // accents from the end, as in Canadian French
}
