module github.com/sextantdb/sextant/bench

go 1.26.0

require (
	github.com/sextantdb/sextant v0.0.0
	go.mongodb.org/mongo-driver/v2 v2.10.0
)

replace github.com/sextantdb/sextant => ../
