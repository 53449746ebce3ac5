// Imaginary parts of a spectrum's ends count as 0, also those that are not finite.
// expects: right
hydra.model @m version 1 {
  hydra.param @y [3, 5, 2] init = normal(1.0)
  hydra.entry @loss(%e: [3, 1, 1] f32, %g: [3, 8] f32) {
    %y = hydra.use @y
    %far = hydra.let exp(1000.0 + %e)
    %first = hydra.let concat(slice(slice(%y, axis = 1, start = 0, size = 1), axis = 2, start = 0, size = 1), %far, axis = 2)
    %last = hydra.let concat(slice(slice(%y, axis = 1, start = 4, size = 1), axis = 2, start = 0, size = 1), %far, axis = 2)
    %spectrum = hydra.let concat(%first, slice(%y, axis = 1, start = 1, size = 3), %last, axis = 1)
    %rows = hydra.irfft %spectrum
    %loss = hydra.let sum(%rows * %g, axes = [0, 1])
    hydra.return loss = %loss
  }
}
