;; Greets the name in `inputs.name`. Returns pairs packed into one i64: length in the high half, address in the low half.
(module
  (import "openwop" "openwop_log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)

  (data (i32.const 0) "vendor.openwop.rust-hello")
  (data (i32.const 64) "vendor.openwop.rust-hello.greet")
  (data (i32.const 128) "\"inputs\":{")
  (data (i32.const 144) "name")
  (data (i32.const 160) "world")
  (data (i32.const 192) "{\"outcome\":\"completed\",\"output\":{\"greeting\":\"Hello, ")
  (data (i32.const 256) "!\"}}")
  ;; Memory from here on is allocated.
  (global $unused (mut i32) (i32.const 1024))

  (func (export "openwop_abi_version") (result i32) (i32.const 1))
  (func (export "openwop_pack_name") (result i64)
    (call $pack (i32.const 0) (i32.const 25)))
  (func (export "openwop_node_count") (result i32) (i32.const 1))
  (func (export "openwop_node_id_at") (param $index i32) (result i64)
    (if (local.get $index) (then (return (i64.const 0))))
    (call $pack (i32.const 64) (i32.const 31)))
  ;; An instance serves one call, so nothing is freed.
  (func (export "openwop_free") (param i32 i32))

  (func $pack (param $at i32) (param $len i32) (result i64)
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $len)) (i64.const 32))
      (i64.extend_i32_u (local.get $at))))

  (func $alloc (export "openwop_alloc") (param $size i32) (result i32)
    (local $at i32) (local $missing i32)
    (local.set $at (global.get $unused))
    (global.set $unused
      (i32.and
        (i32.add (i32.add (local.get $at) (local.get $size)) (i32.const 7))
        (i32.const -8)))
    (local.set $missing
      (i32.sub
        (i32.shr_u (i32.add (global.get $unused) (i32.const 65535)) (i32.const 16))
        (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then
        (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1))
          (then (unreachable)))))
    (local.get $at))

  (func $same (param $a i32) (param $b i32) (param $len i32) (result i32)
    (loop $next
      (if (i32.eqz (local.get $len)) (then (return (i32.const 1))))
      (if (i32.ne (i32.load8_u (local.get $a)) (i32.load8_u (local.get $b)))
        (then (return (i32.const 0))))
      (local.set $a (i32.add (local.get $a) (i32.const 1)))
      (local.set $b (i32.add (local.get $b) (i32.const 1)))
      (local.set $len (i32.sub (local.get $len) (i32.const 1)))
      (br $next))
    (unreachable))

  ;; The quote that ends the string that starts at $at.
  (func $string_end (param $at i32) (param $end i32) (result i32)
    (local $c i32)
    (loop $next
      (if (i32.ge_u (local.get $at) (local.get $end)) (then (return (local.get $end))))
      (local.set $c (i32.load8_u (local.get $at)))
      (if (i32.eq (local.get $c) (i32.const 34)) (then (return (local.get $at))))
      ;; A character after a backslash does not end the string.
      (local.set $at
        (i32.add (local.get $at)
          (i32.add (i32.const 1) (i32.eq (local.get $c) (i32.const 92)))))
      (br $next))
    (unreachable))

  ;; Address and length of the text of `inputs.name`, still escaped; `world` without one.
  (func $name (param $at i32) (param $end i32) (result i64)
    (local $depth i32) (local $c i32) (local $begin i32) (local $close i32)
    (block $missing
      ;; The host writes no blanks, and the inputs come before any data of the caller.
      (loop $search
        (br_if $missing
          (i32.gt_u (i32.add (local.get $at) (i32.const 10)) (local.get $end)))
        (if (i32.eqz (call $same (local.get $at) (i32.const 128) (i32.const 10)))
          (then
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br $search))))
      (local.set $at (i32.add (local.get $at) (i32.const 10)))
      (local.set $depth (i32.const 1))
      (loop $next
        (br_if $missing (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $c (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        ;; `{` and `[`, `}` and `]`: each pair differs in one bit.
        (if (i32.eq (i32.or (local.get $c) (i32.const 32)) (i32.const 123))
          (then (local.set $depth (i32.add (local.get $depth) (i32.const 1)))))
        (if (i32.eq (i32.or (local.get $c) (i32.const 32)) (i32.const 125))
          (then
            (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))
            (br_if $missing (i32.eqz (local.get $depth)))))
        (if (i32.eq (local.get $c) (i32.const 34))
          (then
            (local.set $begin (local.get $at))
            (local.set $close (call $string_end (local.get $at) (local.get $end)))
            (local.set $at (i32.add (local.get $close) (i32.const 1)))
            (br_if $missing
              (i32.ge_u (i32.add (local.get $at) (i32.const 2)) (local.get $end)))
            (br_if $next (i32.ne (local.get $depth) (i32.const 1)))
            (br_if $next
              (i32.ne (i32.sub (local.get $close) (local.get $begin)) (i32.const 4)))
            (br_if $next
              (i32.eqz (call $same (local.get $begin) (i32.const 144) (i32.const 4))))
            ;; Only a key is followed by a colon; only a text starts with a quote.
            (br_if $next (i32.ne (i32.load8_u (local.get $at)) (i32.const 58)))
            (br_if $next
              (i32.ne
                (i32.load8_u (i32.add (local.get $at) (i32.const 1)))
                (i32.const 34)))
            (local.set $begin (i32.add (local.get $at) (i32.const 2)))
            (local.set $close (call $string_end (local.get $begin) (local.get $end)))
            (return
              (call $pack
                (local.get $begin)
                (i32.sub (local.get $close) (local.get $begin))))))
        (br $next)))
    (call $pack (i32.const 160) (i32.const 5)))

  (func (export "openwop_node_invoke")
    (param $node i32) (param $request i32) (param $len i32) (result i64)
    (local $name i64) (local $name_at i32) (local $name_len i32) (local $out i32)
    (local.set $name
      (call $name
        (local.get $request)
        (i32.add (local.get $request) (local.get $len))))
    (local.set $name_at (i32.wrap_i64 (local.get $name)))
    (local.set $name_len (i32.wrap_i64 (i64.shr_u (local.get $name) (i64.const 32))))
    (local.set $out (call $alloc (i32.add (local.get $name_len) (i32.const 56))))
    (memory.copy (local.get $out) (i32.const 192) (i32.const 52))
    (memory.copy
      (i32.add (local.get $out) (i32.const 52))
      (local.get $name_at)
      (local.get $name_len))
    (memory.copy
      (i32.add (i32.add (local.get $out) (i32.const 52)) (local.get $name_len))
      (i32.const 256)
      (i32.const 4))
    ;; The greeting itself, without the JSON around it.
    (call $log
      (i32.const 2)
      (i32.add (local.get $out) (i32.const 45))
      (i32.add (local.get $name_len) (i32.const 8)))
    (call $pack (local.get $out) (i32.add (local.get $name_len) (i32.const 56)))))
