// What the operations that make up a model file refuse: one case for each rule.
//
// RUN: hydra-opt %s --split-input-file --verify-diagnostics

// Only declarations, definitions and entries stand directly in a model.
hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.constant' op does not belong directly into a model}}
  %c = hydra.constant value = 1.0
}

// -----

// Within entries and definitions there are operations of this dialect alone.
hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{'builtin.module' op does not belong into a model}}
    builtin.module {
    }
    hydra.return
  }
}

// -----

// A symbol has one declaration.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{symbol 'D' is declared twice}}
  hydra.symbols reals(D)
}

// -----

// A derived value has another name than every symbol.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{derived value 'D' is declared twice}}
  hydra.derive D = 2
}

// -----

// In a file with entries, something uses every symbol.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{symbol 'F' is never used}}
  hydra.symbols dims(F)
  hydra.entry @e(%x: [D] f32) {
    hydra.return
  }
}

// -----

// In a file with entries, something uses every derived value.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{derived value 'hd' is never used}}
  hydra.derive hd = D / 2
  hydra.entry @e() {
    hydra.return
  }
}

// -----

// In a file with entries, something uses every parameter.
hydra.model @m version 1 {
  // expected-error@+1 {{parameter @w is never used}}
  hydra.param @w [4] init = ones
  hydra.entry @e() {
    hydra.return
  }
}

// -----

// The same holds for parameters of layers.
hydra.model @m version 1 {
  hydra.stack @layers[2] {
    // expected-error@+1 {{parameter @w is never used}}
    hydra.param @w [4] init = ones
  }
  hydra.entry @e() {
    hydra.return
  }
}

// -----

// In a file with entries, something calls every definition.
hydra.model @m version 1 {
  // expected-error@+1 {{definition @d is never called}}
  hydra.def @d() {
  }
  hydra.entry @e() {
    hydra.return
  }
}

// -----

// What an entry uses is declared.
hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{parameter or state @w is not declared}}
    %w = hydra.use @w
    hydra.return
  }
}

// -----

// Parameters of layers exist in loops over them alone.
hydra.model @m version 1 {
  hydra.stack @layers[2] {
    hydra.param @w [4] init = ones
  }
  hydra.entry @e() {
    // expected-error@+1 {{parameter or state @w is not declared}}
    %w = hydra.use @w
    hydra.return
  }
}

// -----

// What a definition uses is declared.
hydra.model @m version 1 {
  hydra.def @d() {
    // expected-error@+1 {{parameter or state @w is not declared}}
    %w = hydra.use @w
  }
}

// -----

// Symbols of the module share one name space.
hydra.model @m version 1 {
  // expected-note@+1 {{see existing symbol definition here}}
  hydra.param @w [4] init = ones
  // expected-error@+1 {{redefinition of symbol named 'w'}}
  hydra.param @w [4] init = ones
}

// -----

// A definition does not close over values of the model: there are none, nor over those of others.
hydra.model @m version 1 {
  hydra.def @a(%x) {
    hydra.yield %x
  }
  hydra.def @b() {
    // expected-error@+1 {{use of undeclared SSA value name}}
    hydra.yield %x
  }
}

//===----------------------------------------------------------------------------------------===//
// symbols, derive, preset, group
//===----------------------------------------------------------------------------------------===//

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{unknown kind of symbols 'sizes'; expected dims, reals, flags or choices}}
  hydra.symbols sizes(D)
}

// -----

// A default is a literal.
hydra.model @m version 1 {
  // expected-error@+1 {{the default of 'F' is not a literal}}
  hydra.symbols dims(D, F = 4 * D)
}

// -----

// A dimension is an integer …
hydra.model @m version 1 {
  // expected-error@+1 {{the default of 'D' is not a non-negative integer}}
  hydra.symbols dims(D = 0.5)
}

// -----

// … that is not negative.
hydra.model @m version 1 {
  // expected-error@+1 {{the default of 'D' is not a non-negative integer}}
  hydra.symbols dims(D = -1)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{the default of 'eps' is not a number}}
  hydra.symbols reals(eps = true)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{the default of 'tied' is not true or false}}
  hydra.symbols flags(tied = 1)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{the default of 'mode' is not one of fast, slow}}
  hydra.symbols choices(mode = medium of (fast, slow))
}

// -----

// A choice says what it chooses from.
hydra.model @m version 1 {
  // expected-error@+1 {{expected 'of'}}
  hydra.symbols choices(mode = fast)
}

// -----

// The number of the layer is not for the model to declare …
hydra.model @m version 1 {
  // expected-error@+1 {{'layer' is reserved}}
  hydra.symbols dims(layer)
}

// -----

// … to derive …
hydra.model @m version 1 {
  // expected-error@+1 {{'index' is reserved}}
  hydra.derive index = 1
}

// -----

// … or a name for infinity, which expressions have.
hydra.model @m version 1 {
  // expected-error@+1 {{'inf' is reserved}}
  hydra.symbols reals(inf = 1.0)
}

// -----

// … or to name dimensions after; nor are words of expressions.
hydra.model @m version 1 {
  // expected-error@+1 {{'and' is reserved}}
  hydra.entry @e() dims(and) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'D.x' is no name for a symbol}}
  hydra.symbols dims(D.x)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{has 1 names but kinds, defaults or options for another number}}
  "hydra.symbols"() {names = ["D"], kinds = [], defaults = [], options = []} : () -> ()
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{attribute 'kinds' failed to satisfy constraint: kinds of symbols}}
  "hydra.symbols"() {names = ["D"], kinds = ["size"], defaults = [unit], options = [[]]} : () -> ()
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{has options that are not lists of names}}
  "hydra.symbols"() {names = ["D"], kinds = [0 : i32], defaults = [unit], options = [1]} : () -> ()
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{attribute 'value' failed to satisfy constraint: expression}}
  "hydra.derive"() {symbol = "a", value = "text"} : () -> ()
}

// -----

// A derived value needs one.
hydra.model @m version 1 {
  // expected-error@+1 {{expected '='}}
  hydra.derive hd
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D, F)
  // expected-error@+1 {{the value of 'F' is not a literal}}
  hydra.preset @small {D = 4, F = 4 * D}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{has a name that is empty or no text}}
  hydra.preset @"t\FFy" {D = 4}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{'D' is given twice}}
  hydra.preset @small {D = 4, D = 5}
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{the value of 'D' is not a literal}}
  "hydra.preset"() {preset = "small", values = {D = [1]}} : () -> ()
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{symbol 'D' of preset @small is not declared}}
  hydra.preset @small {D = 4}
}

// -----

// What follows from symbols is not given.
hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.derive hd = D / 2
  // expected-error@+1 {{symbol 'hd' of preset @small is not declared}}
  hydra.preset @small {D = 4, hd = 2}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D) choices(mode of (fast, slow))
  // expected-error@+1 {{@small gives 'mode' a value that is not one of fast, slow}}
  hydra.preset @small {D = 4, mode = medium}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small has the unknown setting 'D'; expected batch, seq, accum, clip, lr, min_lr, schedule, warmup, stable or schedule_steps}}
  hydra.preset @small {D = 4} settings {batch = 8, D = 5}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'batch' a value that is not a positive integer}}
  hydra.preset @small {D = 4} settings {batch = 0}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'seq' a value that is not a positive integer}}
  hydra.preset @small {D = 4} settings {seq = true}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'accum' a value that is not an integer from 1 to 2147483647}}
  hydra.preset @small {D = 4} settings {accum = 2147483648}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'clip' a value that is not a number from 0 that f32 holds}}
  hydra.preset @small {D = 4} settings {clip = -1.0}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'lr' a value that is not a number from 0 that f32 holds}}
  hydra.preset @small {D = 4} settings {lr = 1.0e39}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'schedule' a value that is not constant, linear, cosine or wsd}}
  hydra.preset @small {D = 4} settings {schedule = step}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'warmup' a value that is not an integer from 0 to 2^52}}
  hydra.preset @small {D = 4} settings {warmup = 0.5}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'schedule_steps' a value that is not an integer from 1 to 2^52}}
  hydra.preset @small {D = 4} settings {schedule_steps = 0}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small has a setting 'min_lr' above its 'lr'}}
  hydra.preset @small {D = 4} settings {lr = 1.0e-4, min_lr = 1}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small has a setting 'warmup', but its 'schedule' is constant; linear stays at its peak behind one}}
  hydra.preset @small {D = 4} settings {schedule = constant, warmup = 3}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small has a setting 'stable', but its 'schedule' is cosine; expected wsd}}
  hydra.preset @small {D = 4} settings {schedule = cosine, stable = 3}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{'batch' is given twice}}
  hydra.preset @small {D = 4} settings {batch = 8, batch = 8}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{the value of 'lr' is not a literal}}
  hydra.preset @small {D = 4} settings {lr = 1.0 / 3.0}
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  // expected-error@+1 {{@small gives the setting 'lr' a value that is not a number from 0 that f32 holds}}
  "hydra.preset"() {preset = "small", values = {D = 4}, settings = {lr = [1]}} : () -> ()
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(D)
  hydra.preset @small {D = 4}
  // expected-error@+1 {{preset @small is declared twice}}
  hydra.preset @small {D = 5}
}

// -----

hydra.model @m version 1 {
  hydra.group @decay adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
  // expected-error@+1 {{group 'decay' is declared twice}}
  hydra.group @decay adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{unknown attribute 'gamma' of adamw; it has: beta1, beta2, eps, wd, lr_scale}}
  hydra.group @decay adamw(gamma = 0.9)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{attribute 'wd' is given twice}}
  hydra.group @decay adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1, wd = 0.2)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.group' op requires attribute 'beta2'}}
  hydra.group @decay adamw(beta1 = 0.9, eps = 1.0e-8, wd = 0.1)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{attribute 'wd' failed to satisfy constraint: number or expression}}
  hydra.group @decay adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = true)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{there is no optimizer 'adagrad'; expected one of: adafactor, adamw, adamw8bit, lion, muon, sgd}}
  hydra.group @decay adagrad(wd = 0.1)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.group' op @decay: momentum is 1; expected a number from 0 to less than 1}}
  hydra.group @decay sgd(momentum = 1.0)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.group' op @decay: nesterov needs momentum; expected a momentum above 0}}
  hydra.group @decay sgd(nesterov = true)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.group' op attribute 'nesterov' failed to satisfy constraint: true, false or expression}}
  hydra.group @decay sgd(momentum = 0.5, nesterov = 1.0)
}

//===----------------------------------------------------------------------------------------===//
// param, state, stack
//===----------------------------------------------------------------------------------------===//

// -----

// expected-error@+1 {{belongs into a model or a stack}}
hydra.param @w [4] init = ones

// -----

hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{symbol's parent must have the SymbolTable trait}}
    hydra.param @w [4] init = ones
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{has elements of 'f64'; expected f32, bf16, f16 or i32}}
  hydra.param @w [4] f64 init = ones
}

// -----

// Integers cannot be trained.
hydra.model @m version 1 {
  // expected-error@+1 {{has elements of 'i32'; what is trained has f32, bf16 or f16 (else use hydra.state)}}
  hydra.param @w [4] i32 init = ones
}

// -----

// Elements begin as numbers of their type.
hydra.model @m version 1 {
  // expected-error@+1 {{begins with 3.7, which is no number of 'i32'}}
  hydra.state @n [4] i32 init = constant(3.7)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{begins with 1e+06, which is no number of 'f16'}}
  hydra.param @w [4] f16 init = constant(1.0e6)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{begins with random numbers that are not whole; elements of 'i32' begin with zeros, ones, constant or shuffle}}
  hydra.state @n [4] i32 init = normal(2.0)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{shape [4, 0] has a dimension that is not positive}}
  hydra.param @w [4, 0] init = ones
}

// -----

// No machine holds this.
hydra.model @m version 1 {
  // expected-error@+1 {{shape [1048576, 1048576, 1024] has more than 2^45 elements}}
  hydra.param @w [1048576, 1048576, 1024] init = ones
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{has a dimension that is not an integer}}
  hydra.param @w [0.5] init = ones
}

// -----

hydra.model @m version 1 {
  // expected-error@+2 {{expected 'init'}}
  hydra.param @w [4]
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{group @decay is not declared}}
  hydra.param @w [4] init = ones group = @decay
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{attribute 'condition' failed to satisfy constraint: expression}}
  "hydra.param"() {sym_name = "w", shape = [4], dtype = f32, init = #hydra.init<ones>, condition = "no"} : () -> ()
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{unknown initialiser 'xavier'; expected zeros, ones, constant, normal, trunc_normal, uniform or shuffle}}
  hydra.param @w [4] init = xavier
}

// -----

// What says something of a parameter stands in one order.
hydra.model @m version 1 {
  // expected-error@+1 {{'group' is not in its place; expected, in this order: shape, element type, init, group, when, from, transposed, frozen}}
  hydra.param @w [4] init = ones frozen group = @default
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'bf16' is not in its place; expected, in this order: shape, element type, init, when}}
  hydra.state @s [4] init = ones bf16
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{initialiser 'trunc_normal' has 1 arguments; expected 2}}
  hydra.param @w [4] init = trunc_normal(0.02)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{initialiser 'constant' wants numbers}}
  hydra.param @w [4] init = constant(true)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{initialiser 'normal' has a negative width}}
  hydra.param @w [4] init = normal(-0.02)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{initialiser 'trunc_normal' is cut at a number that is not positive}}
  hydra.param @w [4] init = trunc_normal(0.02, 0)
}

// -----

hydra.model @m version 1 {
  hydra.stack @layers[2] {
    // expected-error@+1 {{'hydra.constant' op does not belong into a stack}}
    %c = hydra.constant value = 1.0
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{attribute 'count' failed to satisfy constraint: integer or expression}}
  hydra.stack @layers[0.5] {
  }
}

//===----------------------------------------------------------------------------------------===//
// entry, return, use
//===----------------------------------------------------------------------------------------===//

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{@e does not end in hydra.return}}
  hydra.entry @e(%x: [4] f32) {
    %y = hydra.neg %x
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{@e does not end in hydra.return}}
  hydra.entry @e() {}
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{tensor<?xf32> is not a static tensor; expected a shape like [B, S] or a static tensor type}}
  hydra.entry @e(%x: tensor<?xf32>) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{[0] has a dimension that is not positive; expected a shape like [B, S] or a static tensor type}}
  hydra.entry @e(%x: tensor<0xf32>) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{argument 'x' has elements of 'f64'; expected f32, bf16, f16 or i32}}
  hydra.entry @e(%x: [4] f64) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{argument 'x' has a shape that is not a list of integers}}
  hydra.entry @e(%x: [0.5] f32) {
    hydra.return
  }
}

// -----

// Inputs are known by name.
hydra.model @m version 1 {
  // expected-error@+1 {{argument '0' needs a name that begins with a letter}}
  hydra.entry @e(%0: [4] f32) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{has 0 arguments but names, shapes, types or defaults for 1}}
  "hydra.entry"() ({
    hydra.return
  }) {sym_name = "e", arg_names = ["x"], arg_shapes = [], arg_dtypes = [], arg_defaults = [], dims = []} : () -> ()
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{dimension 'B' is declared twice}}
  hydra.entry @e(%x: [B] f32) dims(B, B) {
    hydra.return y = %x
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{argument 'x' is declared twice}}
  "hydra.entry"() ({
  ^bb0(%a: !hydra.any, %b: !hydra.any):
    hydra.return
  }) {sym_name = "e", arg_names = ["x", "x"], arg_shapes = [[], []], arg_dtypes = [f32, f32], arg_defaults = [unit, unit], dims = []} : () -> ()
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{argument 'x' is 'tensor<4xf32>' but its shape and element type are others}}
  "hydra.entry"() ({
  ^bb0(%x: tensor<4xf32>):
    hydra.return
  }) {sym_name = "e", arg_names = ["x"], arg_shapes = [[5]], arg_dtypes = [f32], arg_defaults = [unit], dims = []} : () -> ()
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{has 1 arguments but bounds for 2}}
  hydra.entry @e(%x: tensor<4xi32>) ids(4, 5) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{unknown stage 'sleep' of a program}}
  hydra.entry @e() stage(sleep) {
    hydra.return
  }
}

// -----

// Numbers of a step.
hydra.model @m version 1 {
  // expected-error@+1 {{argument 'x' has a default, but is not one number}}
  hydra.entry @e(%x: [4] f32 = 1.0) {
    hydra.return x = %x
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{argument 'x' has a default that is not an integer}}
  hydra.entry @e(%x: [] i32 = 1.5) {
    hydra.return x = %x
  }
}

// -----

hydra.model @m version 1 {
  hydra.symbols flags(tied = false)
  // expected-error@+1 {{argument 'x' has a default that is not a number}}
  hydra.entry @e(%x: [] f32 = true) {
    %y = hydra.when tied {
      hydra.yield %x
    } else {
      hydra.yield %x
    }
    hydra.return x = %y
  }
}

// -----

// Dimensions of an entry are its own.
hydra.model @m version 1 {
  hydra.symbols dims(B)
  // expected-error@+1 {{dimension 'B' is also a symbol of the model}}
  hydra.entry @e(%x: [B] f32) dims(B) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{output 'y' is named twice}}
    hydra.return y = %x, y = %x
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{expected 'updates', found 'update'}}
    hydra.return y = %x update(@w = %x)
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{updates @w, which is neither parameter nor state}}
    hydra.return updates(@w = %x)
  }
}

// -----

hydra.model @m version 1 {
  hydra.state @w [4] init = ones
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{updates @w twice}}
    hydra.return updates(@w = %x, @w = %x)
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.state @w [4] init = ones
  hydra.entry @e(%x: tensor<5xf32>) {
    // expected-error@+1 {{gives @w a value of 'tensor<5xf32>'; expected 'tensor<4xf32>'}}
    hydra.return updates(@w = %x) : tensor<5xf32>
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{has 1 values for 0 names}}
    "hydra.return"(%x) {output_names = [], updated = []} : (!hydra.any) -> ()
  }
}

// -----

hydra.model @m version 1 {
  hydra.def @d() {
    // expected-error@+1 {{expects parent op 'hydra.entry'}}
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.param @w [4] init = ones
  hydra.entry @e() {
    // expected-error@+1 {{has type 'tensor<5xf32>' but @w is 'tensor<4xf32>'}}
    %w = hydra.use @w : tensor<5xf32>
    hydra.return
  }
}

//===----------------------------------------------------------------------------------------===//
// for, when, def, call, yield
//===----------------------------------------------------------------------------------------===//

// -----

hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{there is no stack @layers}}
    hydra.for @layers {
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{has 1 results but yields 2}}
    %y = hydra.for @layers carry(%h = %x) {
      hydra.yield %h, %h
    }
    hydra.return
  }
}

// -----

// A loop without yield yields nothing.
hydra.model @m version 1 {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{has 1 results but yields 0}}
    %y = hydra.for @layers carry(%h = %x) {
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: tensor<4xf32>) {
    // expected-error@+1 {{carried value 0 starts as 'tensor<4xf32>' but is 'tensor<5xf32>' inside and 'tensor<4xf32>' after}}
    %y = "hydra.for"(%x) <{stack = @layers, operandSegmentSizes = array<i32: 0, 1>}> ({
    ^bb0(%h: tensor<5xf32>):
      hydra.yield %h : tensor<5xf32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: tensor<4xf32>) {
    %y = hydra.for @layers carry(%h = %x) : tensor<4xf32> {
      %n = hydra.cast %h to = bf16 : tensor<4xf32>
      // expected-error@+1 {{carried value 0 changes type from 'tensor<4xf32>' to 'tensor<4xbf16>'}}
      hydra.yield %n : tensor<4xbf16>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{carries 1 values but has 0 results}}
    hydra.for @layers carry(%h = %x) {
      hydra.yield %h
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.symbols dims(L)
  hydra.stack @layers[L] {
  }
  hydra.entry @e(%x: tensor<2x4xf32>, %s: tensor<f32>) {
    // expected-error@+1 {{goes over or joins 'tensor<f32>', which has no rows}}
    %y, %z = hydra.for @layers over(%h = %x) carry(%c = %s) : tensor<2x4xf32>, tensor<f32>, tensor<f32> {
      hydra.yield %c, %c : tensor<f32>, tensor<f32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%s: tensor<f32>) {
    // expected-error@+1 {{carries 2 values but has 1 results}}
    %y = "hydra.for"(%s, %s) <{stack = @layers, operandSegmentSizes = array<i32: 0, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      hydra.yield %a, %b : tensor<f32>, tensor<f32>
    }) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: tensor<3x4xf32>) {
    // expected-error@+1 {{has a sequence of 'tensor<3x4xf32>' for the 2 elements of @layers}}
    hydra.for @layers over(%h = %x) : tensor<3x4xf32> {
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: tensor<f32>) {
    // expected-error@+1 {{goes over 'tensor<f32>', which has no rows}}
    hydra.for @layers over(%h = %x) : tensor<f32> {
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: tensor<2x4xf32>) {
    %y = hydra.for @layers over(%h = %x) : tensor<2x4xf32>, tensor<2x5xf32> {
      // expected-error@+1 {{yields 'tensor<4xf32>' for a row of 'tensor<2x5xf32>'}}
      hydra.yield %h : tensor<4xf32>
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.symbols flags(tied)
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{has results but no else}}
    %y = hydra.when tied {
      hydra.yield %x
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.symbols flags(tied)
  hydra.entry @e(%x: [4] f32) {
    %y = hydra.when tied {
      hydra.yield %x
    } else {
      // expected-error@+1 {{yields 2 values; expected 1}}
      hydra.yield %x, %x
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
  }
  hydra.entry @e(%x: tensor<4xf32>) {
    hydra.for @layers {
      %y = hydra.when layer == 0 : tensor<4xf32> {
        hydra.yield %x : tensor<4xf32>
      } else {
        %n = hydra.cast %x to = bf16 : tensor<4xf32>
        // expected-error@+1 {{yields 'tensor<4xbf16>'; expected 'tensor<4xf32>'}}
        hydra.yield %n : tensor<4xbf16>
      }
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{attribute 'condition' failed to satisfy constraint: expression}}
    "hydra.when"() <{condition = "no"}> ({
      hydra.yield
    }, {
    }) : () -> ()
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{there is no definition @d}}
    hydra.call @d()
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.def @d(%x) {
    hydra.yield %x
  }
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{has 2 operands and 1 results; @d takes 1 and gives 1}}
    %y = hydra.call @d(%x, %x)
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{expects parent op to be one of}}
    hydra.yield
    hydra.return
  }
}

// -----

// A number of results that no definition has.
hydra.model @m version 1 {
  hydra.entry @e() {
    // expected-error@+1 {{4000000000 results; expected at most 4096}}
    %y:4000000000 = hydra.call @d()
    hydra.return
  }
}

//===----------------------------------------------------------------------------------------===//
// Bound models
//===----------------------------------------------------------------------------------------===//

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{'hydra.symbols' op exists only before binding}}
  hydra.symbols dims(D)
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{uses the symbol 'L', which has no value}}
  hydra.stack @layers[L] {
  }
}

// -----

// Initialisers may still depend on the layer in a stack, nowhere else.
hydra.model @m version 1 bound {} {
  // expected-error@+1 {{uses the symbol 'layer', which has no value}}
  hydra.param @w [4] init = constant(layer)
}

// -----

// Only `shuffle` knows the index of an element.
hydra.model @m version 1 bound {} {
  // expected-error@+1 {{uses the symbol 'index', which has no value}}
  hydra.param @w [4] init = constant(index)
}

// -----

hydra.model @m version 1 bound {} {
  hydra.stack @layers[2] {
    // expected-error@+1 {{has a shape that depends on the layer}}
    hydra.param @w [layer + 1] init = ones
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{has a condition that binding should have resolved}}
  hydra.param @w [4] init = ones when true
}

// -----

hydra.model @m version 1 bound {} {
  hydra.entry @e() {
    // expected-error@+1 {{has a condition that binding should have resolved}}
    hydra.when true {
    }
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{has a value of '!hydra.any' in a model that is bound}}
  hydra.entry @e(%x: [4] f32) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{has a value of 'tensor<4xf32>' in a model that is not bound}}
  hydra.entry @e(%x: tensor<4xf32>) {
    hydra.return
  }
}

// -----

hydra.model @m version 1 bound {} {
  // expected-error@+1 {{has a value of 'tensor<0xf32>': [0] has a dimension that is not positive}}
  "hydra.entry"() ({
  ^bb0(%x: tensor<0xf32>):
    hydra.return
  }) {sym_name = "e", arg_names = ["x"], arg_shapes = [[0]], arg_dtypes = [f32], arg_defaults = [unit], dims = []} : () -> ()
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.group' op @default: beta2 is 1; expected a number from 0 to less than 1}}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 1.0, eps = 1.0e-8, wd = 0.1)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.group' op @default: wd is -0.1; expected a finite number from 0}}
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = -0.1)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{initialiser 'constant' has a number that f32 does not hold}}
  hydra.param @w [4] init = constant(inf)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{initialiser 'normal' has a number that f32 does not hold}}
  hydra.param @w [4] init = normal(1.0e39)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op is from a tensor without a name}}
  hydra.param @w [4] init = ones from ""
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op is transposed; expected the name of a tensor, and 2 dimensions}}
  hydra.param @w [4] init = ones from "w" transposed
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op is from "h.{lay}.w"; expected no braces but {layer} and {row}}}
  hydra.param @w [4] init = ones from "h.{lay}.w"
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op is from "h.{row}.w"; expected {row} once, of at least 2 dimensions that are not transposed}}
  hydra.param @w [4] init = ones from "h.{row}.w"
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op is from "h.{row}.{row}"; expected {row} once, of at least 2 dimensions that are not transposed}}
  hydra.param @w [4, 4] init = ones from "h.{row}.{row}"
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op is from "h.{row}.w"; expected {row} once, of at least 2 dimensions that are not transposed}}
  hydra.param @w [4, 4] init = ones from "h.{row}.w" transposed
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op is from "h.{layer}.w"; expected {layer} in stacks only}}
  hydra.param @w [4] init = ones from "h.{layer}.w"
}

// -----

hydra.model @m version 1 {
  hydra.stack @layers[2] {
    // expected-error@+1 {{'hydra.param' op is from "h.w"; expected {layer} once, as it is in a stack}}
    hydra.param @w [4] init = ones from "h.w"
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op shuffles 1048577 numbers; expected at most 1048576}}
  hydra.param @w [1048577] init = shuffle(index)
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 dimensions; expected at most 8}}
  hydra.param @w [1, 1, 1, 1, 1, 1, 1, 1, 1] init = ones
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.param' op has a name that is empty or no text}}
  hydra.param @"" [4] init = ones
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.state' op has a name that is empty or no text}}
  hydra.state @"a\0Ab" [4] init = ones
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.group' op has a name that is empty or no text}}
  hydra.group @"\FF" adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{'hydra.return' op has a name that is empty or no text}}
    hydra.return "" = %x
  }
}

// -----

// A file of tensors could not tell the two apart.
hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  // expected-error@+1 {{argument 'w' has the name of a parameter or state}}
  hydra.entry @e(%w: [4] f32) {
    %p = hydra.use @w
    %y = hydra.mul %w, %p
    hydra.return y = %y
  }
}

// -----

hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  // expected-error@+1 {{'hydra.state' op is a copy of @w in 'i32'; expected f32, bf16 or f16}}
  hydra.state @s [4] i32 init = zeros of @w as copy
}

// -----

hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  // expected-error@+1 {{'hydra.state' op is a copy of no parameter or state of this shape}}
  hydra.state @s [5] init = zeros of @w as copy
}

// -----

hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  // expected-error@+1 {{'hydra.state' op is a gradient of no parameter of this shape}}
  hydra.state @s [5] init = zeros of @w as gradient
}

// -----

hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  // expected-error@+1 {{'hydra.state' op is a part of the gradient of no parameter of this shape}}
  hydra.state @s [5] init = zeros of @w as gradient_part
}

// -----

hydra.model @m version 1 {
  hydra.state @e [4] init = ones
  // expected-error@+1 {{'hydra.state' op is a moment of no parameter}}
  hydra.state @s [4] init = zeros of @e as moment
}

// -----

hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  // expected-error@+1 {{'hydra.state' op is an average of no parameter of this shape}}
  hydra.state @s [5] init = zeros of @w as average
}

// -----

hydra.model @m version 1 {
  hydra.param @w [4] init = ones
  // expected-error@+1 {{'hydra.state' op belongs to @w as step_sum, which has no owner}}
  hydra.state @s [] init = zeros of @w as step_sum
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.state' op counts updates; expected one number of i32}}
  hydra.state @s [] init = zeros as update_count
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.state' op remembers largest magnitudes; expected [operands, steps] of f32}}
  hydra.state @s [4] init = zeros as amax_history
}

// -----

hydra.model @m version 1 {
  hydra.state @t [4] init = zeros
  // expected-error@+1 {{'hydra.state' op is made of @t, which is no parameter}}
  hydra.state @s [4] init = zeros of @t as derived
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{'hydra.state' op is a parameter; expected hydra.param}}
  hydra.state @s [] init = zeros as parameter
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{unknown role 'buffer' of state}}
  hydra.state @s [] init = zeros as buffer
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{unknown role 'test' of a program}}
  hydra.entry @e(%x: [] f32) role(test) {
    hydra.return y = %x
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{has the role 'train', which its stage says; expected eval, generate or decode}}
  hydra.entry @e(%x: [] f32) role(train) {
    hydra.return y = %x
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [] f32) {
    // expected-error@+1 {{returns a gradient of @w, which is no parameter}}
    hydra.return grad @w = %x
  }
}

// -----

hydra.model @m version 1 {
  hydra.param @w [] init = ones
  hydra.entry @e(%x: [] f32) {
    // expected-error@+1 {{'y' stands behind gradients, which are the last outputs}}
    hydra.return grad @w = %x, y = %x
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{argument 's' has the default 1e+39, which is no number of 'f32'}}
  hydra.entry @e(%s: [] f32 = 1.0e39) {
    hydra.return s = %s
  }
}

// -----

hydra.model @m version 1 {
  // expected-error@+1 {{argument 's' has the default 2.14748e+09, which is no number of 'i32'}}
  hydra.entry @e(%s: [] i32 = 2147483648) {
    hydra.return s = %s
  }
}

// -----

hydra.model @m version 1 {
  hydra.entry @e(%x: [4] f32) {
    // expected-error@+1 {{is named '3rd'; expected a letter, then letters, digits and '_'}}
    hydra.section @"3rd"
    hydra.return x = %x
  }
}
