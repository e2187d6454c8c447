;; A filter that drops every node that it is asked about. It copies the number behind `"id":` of each
;; line after the first into a line of its answer.
(component
  (core module $code
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (data (i32.const 32) "{\"id\":")
    (data (i32.const 64) ",\"action\":\"drop\"}\0a")

    (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (loop $more
        (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
          (then
            (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))
            unreachable)))
      (local.get $at))

    (func (export "judge") (param $at i32) (param $length i32) (result i32)
      (local $end i32) (local $start i32) (local $out i32)
      (local.set $end (i32.add (local.get $at) (local.get $length)))
      ;; A line of the answer is shorter than one with all fields of a node.
      (local.set $start
        (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $length)))
      (local.set $out (local.get $start))
      ;; The first line is about the run.
      (block $found
        (loop $skip
          (br_if $found (i32.ge_u (local.get $at) (local.get $end)))
          (br_if $found (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x0a)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $skip)))
      (block $over
        (loop $search
          (br_if $over
            (i32.ge_u (i32.add (local.get $at) (i32.const 5)) (local.get $end)))
          (if
            (i32.and
              (i32.eq (i32.load (local.get $at)) (i32.const 0x22646922))
              (i32.eq (i32.load8_u offset=4 (local.get $at)) (i32.const 0x3a)))
            (then
              (local.set $at (i32.add (local.get $at) (i32.const 5)))
              (memory.copy (local.get $out) (i32.const 32) (i32.const 6))
              (local.set $out (i32.add (local.get $out) (i32.const 6)))
              (loop $digits
                (i32.store8 (local.get $out) (i32.load8_u (local.get $at)))
                (local.set $out (i32.add (local.get $out) (i32.const 1)))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (br_if $digits
                  (i32.lt_u
                    (i32.sub (i32.load8_u (local.get $at)) (i32.const 0x30))
                    (i32.const 10))))
              (memory.copy (local.get $out) (i32.const 64) (i32.const 18))
              (local.set $out (i32.add (local.get $out) (i32.const 18))))
            (else (local.set $at (i32.add (local.get $at) (i32.const 1)))))
          (br $search)))
      (i32.store8 (i32.const 0) (i32.const 0))
      (i32.store (i32.const 4) (local.get $start))
      (i32.store (i32.const 8) (i32.sub (local.get $out) (local.get $start)))
      (i32.const 0)))
  (core instance $instance (instantiate $code))
  (func (export "judge")
    (param "lines" string)
    (result (result string (error string)))
    (canon lift (core func $instance "judge")
      (memory (core memory $instance "memory"))
      (realloc (core func $instance "realloc")))))
