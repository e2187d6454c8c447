;; An inspector whose answer depends on the first byte of the content:
;;   "!"  loops for ever              "u"  traps
;;   "?"  refuses the content         "g"  takes memory until there is none
;;   "i"  calls a function that it imports
;; Its facts are the first byte. Its changes tell whether the content became longer.
(component
  (import "secret" (func $secret))
  (core func $host (canon lower (func $secret)))
  (core module $code
    (import "host" "secret" (func $secret))
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (data (i32.const 32) "{\"first\":\"_\"}")
    (data (i32.const 64) "it is no mesh")
    (data (i32.const 96) "no memory is left")
    (data (i32.const 128) "it became longer")
    (data (i32.const 160) "{\"longer\":true}")
    (data (i32.const 192) "{}")
    ;; The list of sentences: one string.
    (data (i32.const 224) "\80\00\00\00\10\00\00\00")

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

    ;; Writes a result<string, string> to address 0.
    (func $told (param $error i32) (param $text i32) (param $length i32) (result i32)
      (i32.store8 (i32.const 0) (local.get $error))
      (i32.store (i32.const 4) (local.get $text))
      (i32.store (i32.const 8) (local.get $length))
      (i32.const 0))

    (func (export "facts") (param $name i32) (param $name_length i32)
        (param $content i32) (param $length i32) (result i32)
      (local $first i32)
      (local.set $first (i32.load8_u (local.get $content)))
      (if (i32.eq (local.get $first) (i32.const 0x21)) (then (loop $ever (br $ever))))
      (if (i32.eq (local.get $first) (i32.const 0x75)) (then unreachable))
      (if (i32.eq (local.get $first) (i32.const 0x69)) (then (call $secret)))
      (if (i32.eq (local.get $first) (i32.const 0x3f))
        (then (return (call $told (i32.const 1) (i32.const 64) (i32.const 13)))))
      (if (i32.eq (local.get $first) (i32.const 0x67))
        (then
          (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
          (return (call $told (i32.const 1) (i32.const 96) (i32.const 17)))))
      (i32.store8 (i32.const 42) (local.get $first))
      (call $told (i32.const 0) (i32.const 32) (i32.const 13)))

    (func (export "changes") (param $name i32) (param $name_length i32)
        (param $old i32) (param $old_length i32)
        (param $new i32) (param $new_length i32) (result i32)
      (local $longer i32)
      (local.set $longer (i32.gt_u (local.get $new_length) (local.get $old_length)))
      (i32.store8 (i32.const 0) (i32.const 0))
      (i32.store (i32.const 4) (i32.const 224))
      (i32.store (i32.const 8) (local.get $longer))
      (i32.store (i32.const 12)
        (select (i32.const 160) (i32.const 192) (local.get $longer)))
      (i32.store (i32.const 16)
        (select (i32.const 15) (i32.const 2) (local.get $longer)))
      (i32.const 0)))
  (core instance $instance
    (instantiate $code (with "host" (instance (export "secret" (func $host))))))
  (func (export "facts")
    (param "name" string) (param "content" (list u8))
    (result (result string (error string)))
    (canon lift (core func $instance "facts")
      (memory (core memory $instance "memory"))
      (realloc (core func $instance "realloc"))))
  (func (export "changes")
    (param "name" string) (param "old" (list u8)) (param "new" (list u8))
    (result (result (tuple (list string) string) (error string)))
    (canon lift (core func $instance "changes")
      (memory (core memory $instance "memory"))
      (realloc (core func $instance "realloc")))))
