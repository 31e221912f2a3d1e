package verdict

// isotonic is the least-squares fit to ys, weighted by ws, among sequences that never fall: the
// pool-adjacent-violators algorithm (Ayer et al., Ann. Math. Statist. 26, 1955).
func isotonic(ys, ws []float64) []float64 {
	type block struct {
		mean, weight float64
		size         int
	}
	var blocks []block
	for i := range ys {
		b := block{ys[i], ws[i], 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].mean > b.mean {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			weight := last.weight + b.weight
			b = block{(last.mean*last.weight + b.mean*b.weight) / weight, weight, last.size + b.size}
		}
		blocks = append(blocks, b)
	}
	fit := make([]float64, 0, len(ys))
	for _, b := range blocks {
		for range b.size {
			fit = append(fit, b.mean)
		}
	}
	return fit
}
