;; A filter whose answer depends on the first byte of its lines:
;;   "!"  loops for ever              "?"  refuses
;; Otherwise it drops node 0.
(component
  (core module $code
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (data (i32.const 32) "{\"id\":0,\"action\":\"drop\"}\0a")
    (data (i32.const 96) "no node is mine")

    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (loop $more
        (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
          (then
            (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))
            unreachable)))
      (local.get $at))

    (func (export "judge") (param $lines i32) (param $length i32) (result i32)
      (local $first i32)
      (local.set $first (i32.load8_u (local.get $lines)))
      (if (i32.eq (local.get $first) (i32.const 0x21)) (then (loop $ever (br $ever))))
      (i32.store8 (i32.const 0) (i32.eq (local.get $first) (i32.const 0x3f)))
      (i32.store (i32.const 4)
        (select (i32.const 96) (i32.const 32) (i32.eq (local.get $first) (i32.const 0x3f))))
      (i32.store (i32.const 8)
        (select (i32.const 15) (i32.const 25) (i32.eq (local.get $first) (i32.const 0x3f))))
      (i32.const 0)))
  (core instance $instance (instantiate $code))
  (func (export "judge")
    (param "lines" string)
    (result (result string (error string)))
    (canon lift (core func $instance "judge")
      (memory (core memory $instance "memory"))
      (realloc (core func $instance "realloc")))))
