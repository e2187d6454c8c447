# what: perl, ruby, lua, tcl: files, pipes, forks, signals
# needs: perl
# quick: yes
# of: pl.out in
seq 10 >in
perl -e 'open F,"<in"; open G,">","pl.out"; print G reverse <F>; close G; open P,"-|","cat pl.out" or die; print <P>; $SIG{USR1}=sub{print "usr1\n"}; kill USR1=>$$; if(!($p=fork)){exec "echo","child"} waitpid $p,0; print `echo back; exit 3`, $?>>8,"\n"; system("false"); print $?>>8,"\n"; opendir D,"."; print join(" ",sort grep /n/,readdir D),"\n"; use File::Temp; ($fh)=File::Temp::tempfile(UNLINK=>1); print $fh 1; use File::Copy; copy("in","pl.copy"); rename "pl.copy","pl.moved"; print -s "pl.moved","\n"; local $|=1; exit 4'; echo $?
perl -MIO::Socket::UNIX -e '$s=IO::Socket::UNIX->new(Local=>"sk",Listen=>1); if(!fork){IO::Socket::UNIX->new(Peer=>"sk")->print("hi\n"); exit} print scalar readline $s->accept; wait; unlink "sk"'
! command -v ruby >/dev/null || ruby -e 'puts File.read("in").lines.size; puts `echo r`; t=(1..20).map{|i| Thread.new{File.write("r#{i}",i.to_s)}}; t.each(&:join); puts Dir["r*"].size; pid=fork{exit 6}; Process.wait pid; puts $?.exitstatus'
! command -v tclsh >/dev/null || echo 'puts [exec cat in | wc -l]; set f [open "|cat" r+]; puts $f x; close $f write; puts [read $f]; file copy in t; file delete t; catch {exec false} e; puts $e' | tclsh
! command -v lua5.4 >/dev/null || lua5.4 -e 'for l in io.lines("in") do io.write(l," ") end print(os.execute("exit 3")) print(io.popen("echo p"):read("a"))'
